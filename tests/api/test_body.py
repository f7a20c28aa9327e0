from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from typing import Annotated, Any

import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from pydantic import AfterValidator
from starlette.requests import Request
from starlette.types import Message

from llmrun.api import body as module
from llmrun.api.body import check_media_type, decode_object, read_body
from llmrun.api.holding import Holding
from llmrun.api.schema import Body
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_MEDIA, LlmrunError


@pytest.mark.parametrize(
    "content_type",
    [
        "application/json",
        "Application/JSON",
        "application/json; charset=utf-8",
        'application/json;charset="UTF8"',
    ],
)
def test_check_media_type_json_passes(content_type: str) -> None:
    check_media_type(content_type, "")


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("", ""),
        ("text/plain", ""),
        ("text/plain; charset=application/json", ""),
        ("application/x-www-form-urlencoded", ""),
        ("multipart/form-data; boundary=x", ""),
        ("application/json; charset=latin-1", ""),
        ("application/json", "gzip"),
    ],
)
def test_check_media_type_what_a_form_can_send_is_refused(content_type: str, encoding: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        check_media_type(content_type, encoding)
    assert caught.value.kind is UNSUPPORTED_MEDIA


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"", "empty"),
        (b" \n", "empty"),
        (b"{", "not valid JSON"),
        (b"{'a': 1}", "not valid JSON"),
        (b'{"a": 1} x', "not valid JSON"),
        (b'{"a": NaN}', "not valid JSON"),
        (b'{"a": Infinity}', "not valid JSON"),
        (b'{"a": -Infinity}', "not valid JSON"),
        (b'{"a": 1e999}', "out of range"),
        (b'{"a": "\xff"}', "not valid JSON"),
        (b'{"a": "\\ud800"}', "not valid JSON"),
        (b'\xef\xbb\xbf{"a": 1}', "not valid JSON"),
        (b'{"a": 1}'.decode().encode("utf-16"), "not valid JSON"),
        (b"[" * 50_000, "nested too deeply"),
        (b'{"a":' * 50_000 + b"1" + b"}" * 50_000, "nested too deeply"),
        (b"[]", "JSON object"),
        (b'"text"', "JSON object"),
        (b"null", "JSON object"),
    ],
)
def test_decode_object_bad_bytes_are_an_error_in_words(raw: bytes, words: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        decode_object(raw)
    assert caught.value.kind is INVALID_REQUEST
    assert words in caught.value.message


# The first draw builds hypothesis' tables, which is slow beside busy neighbours.


@given(st.dictionaries(st.text(), st.text() | st.integers() | st.none() | st.lists(st.booleans())))
def test_decode_object_reads_what_json_writes(value: dict[str, Any]) -> None:
    assert decode_object(json.dumps(value).encode()) == value


@given(st.binary(max_size=40))
def test_decode_object_any_bytes_are_an_object_or_an_error(raw: bytes) -> None:
    with contextlib.suppress(LlmrunError):
        assert isinstance(decode_object(raw), dict)


def request_of(raw: bytes, lenient: bool = False) -> Request:
    """A POST with this body, in one piece."""
    app = FastAPI()
    app.state.lenient = lenient
    app.state.holding = Holding()

    async def receive() -> Message:
        return {"type": "http.request", "body": raw, "more_body": False}

    headers = [(b"content-type", b"application/json")]
    return Request({"type": "http", "method": "POST", "headers": headers, "app": app, "state": {}}, receive)


def test_read_body_large_one_is_checked_while_the_loop_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 10)
    heard = threading.Event()

    def when_heard(value: str) -> str:
        assert heard.wait(5), "the event loop was held"
        return value

    class Patient(Body):
        text: Annotated[str, AfterValidator(when_heard)]

    async def work() -> Patient:
        asyncio.get_running_loop().call_soon(heard.set)
        return await read_body(request_of(b'{"text": "longer than ten bytes"}'), Patient)

    assert asyncio.run(work()).text == "longer than ten bytes"


def test_read_body_wrong_value_in_a_large_one_is_the_same_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "SMALL", 0)

    class Counted(Body):
        count: int

    with pytest.raises(LlmrunError) as caught:
        asyncio.run(read_body(request_of(b'{"count": "1"}'), Counted))
    assert (caught.value.kind, caught.value.field) == (INVALID_REQUEST, "count")
