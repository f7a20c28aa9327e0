"""A request's bytes in, its checked body out; whatever is wrong with the bytes is said in words.

A large body is decoded and checked in a thread: that may take seconds, in which others want to be heard.

Knows no dialect. Only `application/json` is read: what a page of another site can send without
asking first (a form, `text/plain`, no type at all) must not run a model. Some dialects also read what
`curl -d` sends, which is JSON called a form, where no browser can have sent it.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

import msgspec
from starlette.requests import Request

from llmrun.api.holding import SMALL, Holding
from llmrun.api.schema import Body
from llmrun.errors import INVALID_REQUEST, TIMEOUT, TOO_LARGE, UNSUPPORTED_MEDIA, LlmrunError

B = TypeVar("B", bound=Body)

MAX_BODY = 16 * 1024 * 1024
"""Bytes. Four times the text of a million-token context; bodies carry no media."""

BODY_SECONDS = 300.0
"""For a whole body to come: 16 MiB over a slow line."""


_CURL_TYPES = ("", "application/x-www-form-urlencoded")
_BROWSER_HEADERS = ("origin", "sec-fetch-site", "referer")


def check_media_type(content_type: str, content_encoding: str) -> None:
    """Raise UNSUPPORTED_MEDIA unless the two headers announce plain UTF-8 JSON."""
    media_type, *parameters = (part.strip().lower() for part in content_type.split(";"))
    if media_type != "application/json":
        given = f"Content-Type is {media_type!r}" if media_type else "Content-Type is missing"
        raise LlmrunError(UNSUPPORTED_MEDIA, given, hint="send Content-Type: application/json")
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "charset" and value.strip().strip('"') not in ("utf-8", "utf8", "us-ascii"):
            raise LlmrunError(UNSUPPORTED_MEDIA, f"the charset {value} is not read", hint="send UTF-8")
    if content_encoding.strip().lower() not in ("", "identity"):
        raise LlmrunError(
            UNSUPPORTED_MEDIA,
            f"Content-Encoding {content_encoding!r} is not read",
            hint="send the body uncompressed",
        )


def decode_object(raw: bytes) -> dict[str, object]:
    """The JSON object that `raw` holds; INVALID_REQUEST where it holds anything else.

    Strict JSON: no NaN or Infinity, no lone surrogates, no number past a double's range.
    """
    if not raw.strip():
        raise LlmrunError(INVALID_REQUEST, "the body is empty", hint="send a JSON object")
    try:
        value = msgspec.json.decode(raw)
    except RecursionError:
        raise LlmrunError(INVALID_REQUEST, "the body is nested too deeply") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LlmrunError(INVALID_REQUEST, f"the body is not valid JSON: {error}") from None
    if not isinstance(value, dict):
        raise LlmrunError(INVALID_REQUEST, "the body should be a JSON object", hint='such as {"model": …}')
    return value


async def read_body(request: Request, body: type[B], *, from_curl: bool = False) -> B:
    """The request's body, of at most `MAX_BODY` bytes, as `body`.

    from_curl  JSON that `curl -d` sent without naming its type is read as well

    Where the daemon is lenient, `request.state.not_honoured` names the fields that were passed over.
    A large one is read in a thread: below, it takes a few milliseconds.
    Raises LlmrunError, and starlette's ClientDisconnect where the client leaves before all of it came.
    """
    try:
        raw = await asyncio.wait_for(_read(request, from_curl), BODY_SECONDS)
    except asyncio.TimeoutError:
        raise LlmrunError(TIMEOUT, f"the body did not come within {BODY_SECONDS:g} s") from None
    passed_over: list[str] | None = [] if request.app.state.lenient else None

    def checked() -> B:
        return body.parse(decode_object(raw), passed_over)

    if len(raw) > SMALL:
        async with _holding_of(request).reading:
            parsed = await asyncio.to_thread(checked)
    else:
        parsed = checked()
    request.state.not_honoured = passed_over
    return parsed


async def _read(request: Request, from_curl: bool) -> bytes:
    headers = request.headers
    content_type = headers.get("content-type", "")
    if from_curl and content_type in _CURL_TYPES and not any(name in headers for name in _BROWSER_HEADERS):
        content_type = "application/json"
    check_media_type(content_type, headers.get("content-encoding", ""))
    announced = headers.get("content-length", "")
    if announced.isdecimal() and int(announced) > MAX_BODY:
        raise _too_large()
    raw = bytearray()
    holding = _holding_of(request)
    async for piece in request.stream():
        holding.take(request.scope, len(piece))
        raw += piece
        if len(raw) > MAX_BODY:
            raise _too_large()
    return bytes(raw)


def _holding_of(request: Request) -> Holding:
    holding = request.app.state.holding
    assert isinstance(holding, Holding)
    return holding


def _too_large() -> LlmrunError:
    return LlmrunError(
        TOO_LARGE, f"the body is larger than {MAX_BODY // 2**20} MiB", hint="send less at once"
    )
