"""Events to replies: one object, or a line for each piece of text. Pure but for the clock it is given.

Durations are in nanoseconds. What Ollama has no place for (the wait in the queue, the time to the first
token, tokens that came from the cache) stands under `timings`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import msgspec

from llmrun.api.arguments import whole_object
from llmrun.api.gathered import Gathered, GatheredCall, OfAnswer, limited
from llmrun.api.ollama.lines import Json, line
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    Finished,
    Reasoning,
    Stopped,
    Text,
    TokenLogprob,
    TopLogprob,
)

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


Place = Callable[[str, str, Sequence[Json]], Json]
"""Where a reply has its text, its thinking and its calls."""


def generated(text: str, thinking: str, _calls: Sequence[Json]) -> Json:
    """As `/api/generate` has them; it knows no calls."""
    return {"response": text, **({"thinking": thinking} if thinking else {})}


def said(text: str, thinking: str, calls: Sequence[Json]) -> Json:
    """As `/api/chat` has them."""
    message: Json = {"role": "assistant", "content": text}
    if thinking:
        message["thinking"] = thinking
    if calls:
        message["tool_calls"] = list(calls)
    return {"message": message}


def done_at_once(head: Head, place: Place, reason: str) -> Json:
    """The reply to a request without a prompt; the reason is `load` or `unload`."""
    return {**head.fields(), **place("", "", ()), "done": True, "done_reason": reason}


def stopped(event: Stopped) -> Json:
    """Why the answer ended (calls end it like all else), and its prompt and answer as `context` where the
    request wanted them."""
    reason = "length" if event.reason == "length" else "stop"
    context = {"context": list(event.tokens)} if event.tokens else {}
    return {"done_reason": reason, **limited(event.limit), **context}


def called(call: GatheredCall, number: int) -> list[Json]:
    """A call as it is shown. One that the length limit cut is not: nothing here could say that it is not
    whole, and clients would make it."""
    arguments = whole_object(call.arguments)
    if arguments is None:
        return []
    function = {"index": number, "name": call.name, "arguments": arguments}
    return [{"id": call.id, "function": function}]


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
        "timings": {
            **msgspec.to_builtins(timings),
            "cached_tokens": event.usage.cached,
            "drafted_tokens": event.usage.drafted,
            "accepted_tokens": event.usage.accepted,
            **({"truncated_tokens": event.usage.truncated} if event.usage.truncated else {}),
        },
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
        self._answer = Gathered()
        self._logprobs: list[TokenLogprob] | None = [] if logprobs else None
        self._end: Json = {"done": True}

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, OfAnswer):
            self._answer.add(event)
        if isinstance(event, Text | Reasoning) and self._logprobs is not None:
            self._logprobs.extend(event.logprobs)
        elif isinstance(event, Stopped):
            self._end.update(stopped(event))
        elif isinstance(event, Finished):
            self._end.update(metrics(event))

    def body(self) -> Json:
        answer = self._answer
        calls = [shown for number, call in enumerate(answer.calls) for shown in called(call, number)]
        logprobs = {} if self._logprobs is None else {"logprobs": _records(self._logprobs)}
        place = self._place(answer.text, answer.reasoning, calls)
        return {**self._head.fields(), **place, **self._end, **logprobs}


class Stream:
    """The same reply as lines. Each call returns the bytes to send, often none; a call goes out once it is
    whole, when the next thing comes."""

    def __init__(self, head: Head, place: Place, logprobs: bool) -> None:
        self._head = head
        self._place = place
        self._wants_logprobs = logprobs
        self._calls = 0
        self._call: GatheredCall | None = None
        self._end: Json = {"done": True}

    def event(self, _request: int, event: Event) -> bytes:
        match event:
            case Text():
                return self._release() + self._piece(event, self._place(event.text, "", ()))
            case Reasoning():
                return self._release() + self._piece(event, self._place("", event.text, ()))
            case CallStarted():
                before = self._release()
                self._call = GatheredCall(event.id, event.name)
                return before
            case CallArguments():
                assert self._call is not None
                self._call.add(event.text)
            case Stopped():
                self._end.update(stopped(event))
                return self._release()
            case Finished():
                self._end.update(metrics(event))
        return b""

    def end(self) -> bytes:
        return line({**self._head.fields(), **self._place("", "", ()), **self._end})

    def ping(self) -> bytes:
        """A line without text: keeps a quiet connection alive, and no client shows it."""
        return line({**self._head.fields(), **self._place("", "", ()), "done": False})

    def _piece(self, event: Text | Reasoning, place: Json) -> bytes:
        logprobs = _records(event.logprobs) if self._wants_logprobs else []
        if not (event.text or logprobs):
            return b""
        more: Json = {"logprobs": logprobs} if logprobs else {}
        return line({**self._head.fields(), **place, "done": False, **more})

    def _release(self) -> bytes:
        """The call that was being written, if one was."""
        call, self._call = self._call, None
        if call is None or not (shown := called(call, self._calls)):
            return b""
        self._calls += 1
        return line({**self._head.fields(), **self._place("", "", shown), "done": False})
