from __future__ import annotations

import json

import msgspec
import pytest

from llmrun.api.openai.bodies import ChatBody, CompletionBody
from llmrun.api.openai.errors import error_body
from llmrun.client import wire
from llmrun.errors import CONTEXT_LENGTH, INTERNAL, UNKNOWN_MODEL, LlmrunError
from llmrun.types import Message, Options, OutputFormat, Text


def test_chat_body_sends_only_what_is_set() -> None:
    options = Options(temperature=0.0, top_k=3, stop=("a", "b"), max_tokens=5, ctx=1024)
    body = wire.chat_body("m", [Message(role="user", content="hi")], options)
    assert body == {
        "model": "m",
        "messages": [{"role": "user", "content": "hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,
        "temperature": 0.0,
        "top_k": 3,
        "max_tokens": 5,
        "stop": ("a", "b"),
        "ctx": 1024,
    }


def test_bodies_with_every_option_are_what_the_daemon_takes() -> None:
    """An option that the client forgot to send would be accepted and ignored."""
    lists = {
        "stop": ("x",),
        "samplers": ("top_k",),
        "banned_strings": ("x",),
        "dry_sequence_breakers": ("x",),
    }
    unlike = {**lists, "ignore_eos": True, "adaptive_decay": 0.5}
    every = Options(**{name: unlike.get(name, 1) for name in Options.__struct_fields__})
    for sent, taken in (
        (wire.chat_body("m", [Message(role="user", content="hi")], every), ChatBody),
        (wire.completion_body("m", "hi", every), CompletionBody),
    ):
        assert set(sent) >= set(Options.__struct_fields__)
        taken.parse(json.loads(json.dumps(sent)))


@pytest.mark.parametrize(
    "output", [OutputFormat(kind="json_object"), OutputFormat(kind="json_schema", text='{"enum":["é"]}')]
)
def test_bodies_with_an_output_format_are_what_the_daemon_takes(output: OutputFormat) -> None:
    chat = ChatBody.parse(
        json.loads(json.dumps(wire.chat_body("m", [Message(role="user", content="a")], Options(), output)))
    )
    raw = CompletionBody.parse(json.loads(json.dumps(wire.completion_body("m", "a", Options(), output))))
    for taken in (chat.output_format(), raw.output_format()):
        assert taken is not None
        assert (taken.kind, taken.text.replace(" ", "")) == (output.kind, output.text)


def test_error_of_the_daemons_own_body_is_the_error_again() -> None:
    sent = LlmrunError(CONTEXT_LENGTH, "too long", hint="be short", field="messages", context=8)
    error = wire.error_of(400, json.dumps(error_body(sent)).encode())
    assert (error.kind, str(error), error.field) == (CONTEXT_LENGTH, "too long. be short", "messages")
    assert error.details == {"context": 8}


def test_error_of_unknown_code_is_internal() -> None:
    error = wire.error_of(500, b'{"error": {"message": "new trouble", "code": "from_the_future"}}')
    assert (error.kind, str(error)) == (INTERNAL, "new trouble")


def test_error_of_foreign_body_quotes_it() -> None:
    error = wire.error_of(404, b"<html>nginx</html>")
    assert error.kind is INTERNAL
    assert "404" in str(error)
    assert "nginx" in str(error)


def test_error_of_unknown_model_keeps_its_exit_code() -> None:
    body = json.dumps(error_body(LlmrunError(UNKNOWN_MODEL, "no model"))).encode()
    assert wire.error_of(404, body).kind.exit == 3


def test_chunk_ignores_fields_it_does_not_know() -> None:
    data = b'{"id": "x", "choices": [{"index": 0, "delta": {"content": "a", "role": "assistant"}, "new": 1}]}'
    chunk = msgspec.json.decode(data, type=wire.Chunk)
    assert list(chunk.parts()) == [Text(0, "a")]
