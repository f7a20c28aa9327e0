"""Against the real HTTP app; its service plays a script."""

from __future__ import annotations

import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import contextmanager
from urllib.parse import urlsplit

import pytest

from llmrun.client.client import Client
from llmrun.config import Settings
from llmrun.daemon.pool import LoadedModel
from llmrun.errors import (
    DAEMON_UNREACHABLE,
    INTERNAL,
    INVALID_REQUEST,
    RUNNER_DIED,
    UNAUTHORIZED,
    UNKNOWN_MODEL,
    LlmrunError,
)
from llmrun.types import (
    EmbedRequest,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Message,
    Options,
    Progress,
    Reasoning,
    Started,
    Stopped,
    Text,
    Thinking,
    Usage,
)
from tests.api.scripted import MODEL, TIMINGS, ScriptedService, answer
from tests.api.server import serving
from tests.api.vectors import vector, vectors
from tests.support.frames import model_info, stats

HELLO = [Message(role="user", content="hi")]


def test_chat_streams_pieces_and_then_knows_how_it_ended(client: Client, service: ScriptedService) -> None:
    with client.chat(MODEL, HELLO, Options(temperature=0.0, stop=("x",))) as reply:
        assert list(reply) == ["Hello", " wörld"]
    assert reply.text == "Hello wörld"
    assert reply.finish_reason == "stop"
    assert reply.usage is not None
    assert (reply.usage.prompt, reply.usage.completion, reply.usage.cached) == (5, 2, 2)
    assert reply.timings == TIMINGS
    (asked,) = service.asked
    assert asked.messages is not None
    assert [(m.role, m.content) for m in asked.messages] == [("user", "hi")]
    assert asked.options == Options(temperature=0.0, stop=("x",))


def test_complete_sends_the_prompt_as_it_is(client: Client, service: ScriptedService) -> None:
    with client.complete(MODEL, "<raw>", Options()) as reply:
        assert "".join(reply) == "Hello wörld"
    assert service.asked[0].prompt == "<raw>"


def test_chat_parts_are_progress_reasoning_and_text(client: Client, service: ScriptedService) -> None:
    async def thinks(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(5, 42)
        yield Progress(2, 5, 1, 7.0)
        yield Reasoning(0, "Hm")
        yield Text(0, "Yes")
        yield Stopped(0, "stop")
        yield Finished(
            Usage(prompt=5, completion=2, reasoning=1, drafted=3, accepted=2, truncated=4), TIMINGS
        )

    service.script = thinks
    with client.chat(MODEL, HELLO, Options(), think=True) as reply:
        assert list(reply.parts()) == [Progress(2, 5, 1, 7.0), Reasoning(0, "Hm"), Text(0, "Yes")]
    assert (reply.text, reply.reasoning) == ("Yes", "Hm")
    assert reply.usage == Usage(prompt=5, completion=2, reasoning=1, drafted=3, accepted=2, truncated=4)
    assert service.asked[0].thinking == Thinking(enabled=True, field="think")


def test_chat_earlier_reasoning_goes_back_with_its_turn(client: Client, service: ScriptedService) -> None:
    turns = (*HELLO, Message(role="assistant", content="Yes", reasoning="Hm"), *HELLO)
    with client.chat(MODEL, turns, Options()) as reply:
        list(reply)
    assert service.asked[0].messages == turns


def test_result_is_the_whole_answer(client: Client) -> None:
    with client.chat(MODEL, HELLO, Options()) as reply:
        list(reply)
    assert reply.result()["text"] == "Hello wörld"
    assert reply.result()["usage"].items() >= {"prompt": 5, "completion": 2, "cached": 2}.items()


def test_chat_unknown_model_raises_before_any_text(client: Client) -> None:
    with pytest.raises(LlmrunError, match="no model 'other'") as caught:
        client.chat("other", HELLO, Options())
    assert caught.value.kind is UNKNOWN_MODEL


def test_chat_value_out_of_range_is_the_daemons_to_refuse(client: Client) -> None:
    with pytest.raises(LlmrunError, match="temperature") as caught:
        client.chat(MODEL, HELLO, Options(temperature=-1.0))
    assert caught.value.kind is INVALID_REQUEST


def test_chat_error_in_the_middle_is_raised_after_the_text_so_far(
    client: Client, service: ScriptedService
) -> None:
    async def dies(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "Hel")
        yield Failed(LlmrunError(RUNNER_DIED, "killed by SIGKILL").info())

    service.script = dies
    with (
        client.chat(MODEL, HELLO, Options()) as reply,
        pytest.raises(LlmrunError, match="SIGKILL") as caught,
    ):
        list(reply)
    assert caught.value.kind is RUNNER_DIED
    assert reply.text == "Hel"


def test_leaving_an_answer_early_cancels_it(client: Client, service: ScriptedService) -> None:
    never = threading.Event()

    async def endless(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        import asyncio

        yield Started(1, 1)
        try:
            while True:
                yield Text(0, "la ")
                await asyncio.sleep(0.01)
        finally:
            never.set()

    service.script = endless
    with client.chat(MODEL, HELLO, Options()) as reply:
        next(iter(reply))
    assert never.wait(10)


def test_chat_text_with_unicode_line_ends_arrives_whole(client: Client, service: ScriptedService) -> None:
    text = "a\u2028b\u2029c\u0085d"

    async def says(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(text):
            yield event

    service.script = says
    with client.chat(MODEL, HELLO, Options()) as reply:
        assert "".join(reply) == text


def test_loaded_reads_what_the_daemon_says(client: Client, service: ScriptedService) -> None:
    info = model_info(ctx=512, kv_bytes=3)
    said = stats(running=1, waiting=2, decode_tps=10.5)
    service.running = [
        LoadedModel("a", "ready", 1.0, info, said, 12, 1.0, 2.0, 1),
        LoadedModel("b", "loading", 0.5, None, None, None, 1.0, None, 0),
    ]
    first, second = client.loaded()
    assert (first.name, first.state, first.in_flight) == ("a", "ready", 1)
    assert first.info is not None
    assert (first.info.ctx, first.info.kv_bytes) == (512, 3)
    assert first.stats is not None
    assert (first.stats.waiting, first.stats.decode_tps) == (2, 10.5)
    assert (second.progress, second.info, second.expires_at) == (0.5, None, None)


def test_stop_names_what_was_unloaded(client: Client, service: ScriptedService) -> None:
    service.running = [LoadedModel("a", "ready", 1.0, None, None, 1, 1.0, None, 0)]
    assert client.stop() == ["a"]
    assert client.stop("b") == []
    assert service.stopped == [None, "b"]


def test_api_key_is_sent() -> None:
    with serving(ScriptedService(), Settings(api_key="secret")) as url:
        address = urlsplit(url)
        with Client(address.hostname or "", address.port or 0, "secret") as client:
            assert client.loaded() == []
        with Client(address.hostname or "", address.port or 0) as client:
            assert client.is_healthy()
            with pytest.raises(LlmrunError) as caught:
                client.loaded()
            assert caught.value.kind is UNAUTHORIZED


def test_no_daemon_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    with Client("127.0.0.1", port) as client:
        assert not client.is_healthy()
        for call in (client.loaded, lambda: client.chat(MODEL, HELLO, Options())):
            with pytest.raises(LlmrunError, match=f":{port}") as caught:
                call()
            assert caught.value.kind is DAEMON_UNREACHABLE
            assert caught.value.kind.exit == 5


@contextmanager
def saying(reply: bytes) -> Iterator[int]:
    """The port of a server that sends these bytes to one client and hangs up."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            peer, _ = listener.accept()
            with peer:
                peer.recv(65536)
                peer.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1]
        thread.join(10)


HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
PIECE = b'data: {"choices": [{"delta": {"content": "Hel"}}]}\n\n'


def chunk(data: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(data), data)


@pytest.mark.parametrize(
    "reply",
    [HEAD + chunk(PIECE), HEAD + chunk(PIECE) + b"0\r\n\r\n"],
    ids=["connection cut", "stream ended without its end mark"],
)
def test_daemon_that_goes_away_midway_is_an_error_and_not_a_short_answer(reply: bytes) -> None:
    with saying(reply) as port, Client("127.0.0.1", port) as client:
        answering = client.chat(MODEL, HELLO, Options())
        with answering, pytest.raises(LlmrunError, match="middle of the answer") as caught:
            list(answering)
    assert caught.value.kind is DAEMON_UNREACHABLE
    assert answering.text == "Hel"


def test_chunk_that_is_no_json_is_an_error() -> None:
    with saying(HEAD + chunk(b"data: {oops\n\n")) as port, Client("127.0.0.1", port) as client:
        answering = client.chat(MODEL, HELLO, Options())
        with answering, pytest.raises(LlmrunError) as caught:
            list(answering)
    assert caught.value.kind is INTERNAL


def test_embed_gives_vectors_in_order_and_names_what_was_cut(
    client: Client, service: ScriptedService
) -> None:
    service.lookup = vectors
    reply = client.embed(MODEL, ["a", "b"], dimensions=3, truncate=True)
    assert reply.vectors() == [vector(0).numbers(), vector(1).numbers()]
    assert [(cut.index, cut.tokens_cut) for cut in reply.truncated] == [(1, 7)]
    (asked,) = service.looked_up
    assert isinstance(asked, EmbedRequest)
    assert (asked.inputs, asked.dimensions, asked.truncate) == (("a", "b"), 3, True)
