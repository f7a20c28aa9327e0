from __future__ import annotations

import json

import pytest

from tests.soak.outcomes import STREAMS, End, outcome


def sse(*events: object) -> bytes:
    return b"".join(
        b"data: " + (e if isinstance(e, bytes) else json.dumps(e).encode()) + b"\n\n" for e in events
    )


def piece(reason: str | None) -> dict[str, object]:
    return {"choices": [{"finish_reason": reason}]}


def end(dialect: str, body: bytes, *, stream: bool = True, status: int = 200, after: str = "") -> End:
    headers = {"content-type": STREAMS[dialect == "ollama"] if stream else "application/json"}
    return outcome(dialect, status, headers | ({"retry-after": after} if after else {}), body).end


@pytest.mark.parametrize(
    ("dialect", "good", "bad"),
    [
        (
            "openai",
            sse(piece(None), piece("stop"), b"[DONE]"),
            [sse(piece("stop")), sse(piece("stop"), piece("stop"), b"[DONE]"), sse(piece(None), b"[DONE]"),
             sse(piece(None), {"error": {"message": "x"}}, b"[DONE]")],
        ),
        (
            "anthropic",
            sse({"type": "message_start"}, {"type": "message_stop"}),
            [sse({"type": "message_start"}), sse({"type": "message_stop"}, {"type": "message_stop"}), b""],
        ),
        (
            "ollama",
            b'{"done": false}\n{"done": true}\n',
            [b'{"done": false}\n', b'{"done": true}\n{"done": true}\n', b'{"done": true}\n{"done": false}\n',
             b'{"done": fal'],
        ),
        (
            "llama.cpp",
            sse({"stop": False}, {"stop": True}),
            [sse({"stop": False}), sse({"error": {"code": 500}})],
        ),
    ],
)  # fmt: skip
def test_outcome_of_a_stream_has_one_end_that_is_last(dialect: str, good: bytes, bad: list[bytes]) -> None:
    assert end(dialect, good) is End.FINISHED
    assert [end(dialect, each) for each in bad] == [End.FAULT] * len(bad)


def test_outcome_of_a_body_says_how_it_finished() -> None:
    assert end("openai", json.dumps(piece("length")).encode(), stream=False) is End.FINISHED
    assert end("openai", json.dumps(piece(None)).encode(), stream=False) is End.FAULT
    assert end("anthropic", b'{"stop_reason": null}', stream=False) is End.FAULT
    assert end("vectors", b'{"data": []}', stream=False) is End.FAULT


def test_outcome_of_refusals_needs_an_error_and_of_busyness_a_time() -> None:
    assert end("openai", b'{"error": {"message": "no"}}', status=400) is End.REFUSED
    assert end("openai", b"no", status=400) is End.FAULT
    assert end("openai", b'{"error": "x"}', status=500) is End.FAULT
    assert end("openai", b"{}", status=503) is End.FAULT
    assert end("openai", b"{}", status=503, after="0") is End.FAULT
    assert end("openai", b"{}", status=429, after="7") is End.BUSY


def test_outcome_of_a_refusal_that_came_after_the_headers_is_one() -> None:
    error = {"error": {"message": "the prompt has 9 tokens, but the context holds 8"}}
    assert end("openai", sse(error)) is End.REFUSED
    assert end("openai", sse(piece("stop"), error)) is End.FAULT
