"""How a request ended, told from its reply alone. In: a dialect, a status, headers, the body's bytes as far
as they came. Out: an `Outcome`. Pure; knows no network.

A reply has exactly one end: one body that says how it finished, one stream with one last event, or one error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any, NamedTuple

Json = Any


class End(Enum):
    """FINISHED in full; REFUSED for what it asked; BUSY: told to come again later; HUNG_UP: we left.
    FAULT: all else, an answer that was promised and did not come as well as one that ended twice."""

    FINISHED = "finished"
    REFUSED = "refused"
    BUSY = "busy"
    HUNG_UP = "hung up"
    FAULT = "fault"


class Outcome(NamedTuple):
    """`why` is for faults, and is what came."""

    end: End
    why: str = ""


STREAMS = ("text/event-stream", "application/x-ndjson")
FINISHED, HUNG_UP = Outcome(End.FINISHED), Outcome(End.HUNG_UP)


def outcome(dialect: str, status: int, headers: Mapping[str, str], body: bytes) -> Outcome:
    """What a whole reply says. `dialect` is one of `DIALECTS`; `headers` have lower-case names."""
    if status in (429, 503, 529):  # the last is Anthropic's
        after = headers.get("retry-after", "")
        busy = after.isdecimal() and int(after) >= 1
        return Outcome(End.BUSY) if busy else _fault(f"{status} with Retry-After {after!r}", body)
    if status != 200:
        try:
            said = json.loads(body)
        except ValueError:
            return _fault(f"{status} without a JSON body", body)
        known = 400 <= status < 500 and "error" in said
        return Outcome(End.REFUSED) if known else _fault(f"status {status}", body)
    stream = headers.get("content-type", "").startswith(STREAMS)
    if stream and _refused_late(body):
        return Outcome(End.REFUSED)
    try:
        ends = (DIALECTS[dialect].ends if stream else DIALECTS[dialect].whole)(body)
    except (ValueError, LookupError, TypeError) as error:
        return _fault(repr(error), body)
    return FINISHED if ends == 1 else _fault(f"{ends} ends", body)


def _refused_late(body: bytes) -> bool:
    """Whether all that a stream says is that it cannot be: its headers were out when that was found."""
    said = _events(body) or _lines(body)
    return len(said) == 1 and "the context holds" in said[0]


def _fault(what: str, body: bytes) -> Outcome:
    return Outcome(End.FAULT, f"{what}: …{body[-300:]!r}")


class Dialect(NamedTuple):
    """How many ends a body has, and how many a stream; the end of a stream must be the last that it says."""

    whole: Callable[[bytes], int]
    ends: Callable[[bytes], int]


def _events(body: bytes) -> list[str]:
    """The data of each server-sent event."""
    lines = body.decode().split("\n")
    return [line.removeprefix("data: ") for line in lines if line.startswith("data: ")]


def _objects(texts: list[str]) -> list[Json]:
    objects = [json.loads(text) for text in texts]
    if failed := [each for each in objects if each.get("error")]:
        raise ValueError(f"an error in the stream: {failed[0]}")
    return objects


def _openai_whole(body: bytes) -> int:
    return int(all(choice["finish_reason"] for choice in json.loads(body)["choices"]))


def _openai_ends(body: bytes) -> int:
    *texts, last = _events(body)
    if last != "[DONE]":
        raise ValueError("no [DONE] at the end")
    reasons = [
        choice["finish_reason"]
        for piece in _objects(texts)
        for choice in piece["choices"]
        if choice["finish_reason"]
    ]
    return len(reasons)


def _typed_ends(*last: str) -> Callable[[bytes], int]:
    """Streams whose events have a type, and end with one of `last`."""

    def ends(body: bytes) -> int:
        kinds = [event["type"] for event in _objects(_events(body))]
        if kinds[-1] not in last:
            raise ValueError(f"{kinds[-1]} at the end")
        return sum(kind in last for kind in kinds)

    return ends


def _flagged_ends(flag: str, split: Callable[[bytes], list[str]]) -> Callable[[bytes], int]:
    """Streams of objects of which the last has a flag."""

    def ends(body: bytes) -> int:
        flags = [bool(each.get(flag)) for each in _objects(split(body))]
        if not flags[-1]:
            raise ValueError(f"no {flag!r} at the end")
        return sum(flags)

    return ends


def _has(*path: str) -> Callable[[bytes], int]:
    """Bodies that are whole where there is something at `path`."""

    def whole(body: bytes) -> int:
        said = json.loads(body)
        for name in path:
            said = said[name]
        return int(bool(said))

    return whole


def _no_stream(body: bytes) -> int:
    raise ValueError(f"{len(body)} bytes of a stream where there is none")


def _lines(body: bytes) -> list[str]:
    return body.decode().splitlines()


DIALECTS = {
    "openai": Dialect(_openai_whole, _openai_ends),
    "responses": Dialect(
        _has("output"), _typed_ends("response.completed", "response.incomplete", "response.failed")
    ),
    "anthropic": Dialect(_has("stop_reason"), _typed_ends("message_stop")),
    "ollama": Dialect(_has("done"), _flagged_ends("done", _lines)),
    "llama.cpp": Dialect(_has("stop"), _flagged_ends("stop", _events)),
    "vectors": Dialect(_has("data"), _no_stream),
    "ollama vectors": Dialect(_has("embeddings"), _no_stream),
    "tokens": Dialect(_has("tokens"), _no_stream),
}
