"""Events to replies: one object, or a line for each piece of text. Pure but for the clock it is given.

Durations are in nanoseconds. What Ollama has no place for (the wait in the queue, the time to the first
token, tokens that came from the cache) stands under `timings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import msgspec

from llmrun.api.ollama.lines import Json, line
from llmrun.types import Event, Finished, Stopped, Text, TokenLogprob, TopLogprob

LEAST = -9999.0
"""Stands for a token that is all but impossible; JSON has no minus infinity."""
_NS = 1_000_000  # in a millisecond


@dataclass(frozen=True)
class Head:
    """What every object of a reply begins with. `now` gives the time as RFC 3339 text."""

    model: str
    now: Callable[[], str]

    def fields(self) -> Json:
        return {"model": self.model, "created_at": self.now()}


Place = Callable[[str], Json]


def generated(text: str) -> Json:
    """Where `/api/generate` has the text."""
    return {"response": text}


def said(text: str) -> Json:
    """Where `/api/chat` has it."""
    return {"message": {"role": "assistant", "content": text}}


def done_at_once(head: Head, place: Place, reason: str) -> Json:
    """The reply to a request without a prompt; the reason is `load` or `unload`."""
    return {**head.fields(), **place(""), "done": True, "done_reason": reason}


def stopped(event: Stopped) -> Json:
    """Why the answer ended, and its prompt and answer as `context` where the request wanted them."""
    return {"done_reason": event.reason, **({"context": list(event.tokens)} if event.tokens else {})}


def metrics(event: Finished) -> Json:
    """Counts and durations. `eval_duration` is never 0, as clients divide by it."""
    timings = event.timings
    return {
        "total_duration": round((timings.ttft_ms + timings.decode_ms) * _NS),
        "load_duration": round(timings.load_ms * _NS),
        "prompt_eval_count": event.usage.prompt,
        "prompt_eval_duration": round(timings.prefill_ms * _NS),
        "eval_count": event.usage.completion,
        "eval_duration": max(round(timings.decode_ms * _NS), 1),
        "timings": {**msgspec.to_builtins(timings), "cached_tokens": event.usage.cached},
    }


def _record(token: TokenLogprob | TopLogprob) -> Json:
    """A token may hold part of a character: its text is then written with escapes such as `\\xf0`."""
    return {
        "token": token.raw.decode("utf-8", "backslashreplace"),
        "logprob": max(token.logprob, LEAST),
        "bytes": list(token.raw),
    }


def _records(tokens: Iterable[TokenLogprob]) -> list[Json]:
    return [{**_record(token), "top_logprobs": [_record(top) for top in token.top]} for token in tokens]


class Reply:
    """The whole reply, folded from the events of its request."""

    def __init__(self, head: Head, place: Place, logprobs: bool) -> None:
        self._head = head
        self._place = place
        self._text: list[str] = []
        self._logprobs: list[TokenLogprob] | None = [] if logprobs else None
        self._end: Json = {"done": True}

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Text):
            self._text.append(event.text)
            if self._logprobs is not None:
                self._logprobs.extend(event.logprobs)
        elif isinstance(event, Stopped):
            self._end.update(stopped(event))
        elif isinstance(event, Finished):
            self._end.update(metrics(event))

    def body(self) -> Json:
        logprobs = {} if self._logprobs is None else {"logprobs": _records(self._logprobs)}
        return {**self._head.fields(), **self._place("".join(self._text)), **self._end, **logprobs}


class Stream:
    """The same reply as lines. Each call returns the bytes to send, often none."""

    def __init__(self, head: Head, place: Place, logprobs: bool) -> None:
        self._head = head
        self._place = place
        self._wants_logprobs = logprobs
        self._end: Json = {"done": True}

    def event(self, _request: int, event: Event) -> bytes:
        if isinstance(event, Text):
            return self._piece(event)
        if isinstance(event, Stopped):
            self._end.update(stopped(event))
        elif isinstance(event, Finished):
            self._end.update(metrics(event))
        return b""

    def end(self) -> bytes:
        return line({**self._head.fields(), **self._place(""), **self._end})

    def ping(self) -> bytes:
        """A line without text: keeps a quiet connection alive, and no client shows it."""
        return line({**self._head.fields(), **self._place(""), "done": False})

    def _piece(self, event: Text) -> bytes:
        logprobs = _records(event.logprobs) if self._wants_logprobs else []
        if not (event.text or logprobs):
            return b""
        more: Json = {"logprobs": logprobs} if logprobs else {}
        return line({**self._head.fields(), **self._place(event.text), "done": False, **more})
