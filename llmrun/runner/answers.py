"""What goes up for each request: the engine's events, read by the parser of what its model writes.

Filled by the preparing threads, read by the writer's, so that no parsing holds up a step. Requests whose
answers are plain text are not in it, and their events pass through as they are.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from llmrun.chat.syntax import (
    ArgumentsPiece,
    CallPiece,
    ContentPiece,
    OutputParser,
    Piece,
    ReasoningPiece,
)
from llmrun.errors import INTERNAL, LlmrunError
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    Failed,
    Finished,
    Reasoning,
    Started,
    Stopped,
    Text,
    TokenLogprob,
)

MakeParser = Callable[[], OutputParser]


@dataclass
class _Answer:
    """One answer's parser, and the log probabilities of tokens that are not yet known to be shown. `rest` is
    the end of the token in front of them, where not all of its text is shown yet."""

    parser: OutputParser
    logprobs: list[TokenLogprob] = field(default_factory=list)
    rest: bytes = b""
    calls: int = 0

    def spent_on(self, text: str, *, last: bool) -> tuple[TokenLogprob, ...]:
        """The log probabilities of the tokens that make `text`, which is shown now. Those in front of them,
        of markers and calls, are gone. `last`: what follows is held back, so it is sought from behind."""
        raw, sought = self.rest + b"".join(entry.raw for entry in self.logprobs), text.encode()
        find = raw.rfind if last else raw.find
        begin = 0 if raw.startswith(sought) else max(find(sought), 0)
        end = begin + len(sought)
        taken, place, count = [], len(self.rest), 0
        while place < end and count < len(self.logprobs):
            entry = self.logprobs[count]
            place += len(entry.raw)
            count += 1
            if place > begin:
                taken.append(entry)
        self.rest = raw[end:place]
        del self.logprobs[:count]
        return tuple(taken)


class Answers:
    """Of one runner. `read` is the writer's; the rest may be called from any thread, each id from one."""

    def __init__(self) -> None:
        self._echoes: dict[str, tuple[str, int]] = {}
        self._parsed: dict[str, list[_Answer]] = {}
        self._single: set[str] = set()
        self._failures: dict[str, LlmrunError] = {}

    def echo(self, request_id: str, text: str, n: int) -> None:
        """Each of `n` answers begins with `text`."""
        self._echoes[request_id] = (text, n)

    def parse(self, request_id: str, make: MakeParser, n: int, *, parallel: bool) -> None:
        """Each of `n` answers has a parser of its own. Unless `parallel`, only its first call counts."""
        self._parsed[request_id] = [_Answer(make()) for _ in range(n)]
        if not parallel:
            self._single.add(request_id)

    def read(self, items: list[tuple[str, Event]]) -> list[tuple[str, Event]]:
        """What goes up for events of the engine, each with its request's id."""
        if not (self._parsed or self._echoes):
            return items
        return [(name, said) for name, event in items for said in self._guarded(name, event)]

    def _guarded(self, request_id: str, event: Event) -> list[Event]:
        """A request whose text a parser fails on ends with that, once the engine is done with it."""
        failure = self._failures.get(request_id)
        if failure is None:
            try:
                return self._read(request_id, event)
            except Exception as error:
                failure = LlmrunError(INTERNAL, f"the answer could not be parsed: {error!r}")
                self._failures[request_id] = failure
        if not isinstance(event, Finished | Failed):
            return []
        self.forget(request_id)
        return [Failed(failure.info())]

    def _read(self, request_id: str, event: Event) -> list[Event]:
        if isinstance(event, Started):
            text, n = self._echoes.pop(request_id, ("", 0))
            return [event, *(Text(index, text) for index in range(n))]
        if isinstance(event, Finished | Failed):
            self.forget(request_id)
        elif (answers := self._parsed.get(request_id)) and isinstance(event, Text | Stopped):
            answer, single = answers[event.index], request_id in self._single
            if isinstance(event, Text):
                return _said(event, answer, single)
            return _stopped(event, answer, single)
        return [event]

    def forget(self, request_id: str) -> None:
        """The request has ended."""
        self._echoes.pop(request_id, None)
        self._parsed.pop(request_id, None)
        self._single.discard(request_id)
        self._failures.pop(request_id, None)


def _said(event: Text, answer: _Answer, single: bool) -> list[Event]:
    answer.logprobs += event.logprobs
    return _events(answer.parser.feed(event.text), event.index, answer, single)


def _stopped(event: Stopped, answer: _Answer, single: bool) -> list[Event]:
    events = _events(answer.parser.close(cut=event.reason == "length"), event.index, answer, single)
    called = answer.calls and event.reason == "stop" and event.stop_sequence is None
    if called:
        event = Stopped(event.index, "tool_calls", None, event.tokens, left_out=event.left_out)
    return [*events, event]


def _events(pieces: list[Piece], index: int, answer: _Answer, single: bool) -> list[Event]:
    """`pieces` as events, neighbours of a kind joined; log probabilities go with the text of their tokens."""
    events: list[Event] = []
    for piece in pieces:
        if isinstance(piece, ContentPiece | ReasoningPiece):
            kind = Text if isinstance(piece, ContentPiece) else Reasoning
            last = events[-1] if events else None
            if isinstance(last, Text | Reasoning) and isinstance(last, kind):
                events[-1] = kind(index, last.text + piece.text)
            else:
                events.append(kind(index, piece.text))
        elif isinstance(piece, CallPiece | ArgumentsPiece) and (piece.call == 0 or not single):
            events.append(_call_event(piece, index, answer))
    if answer.logprobs or answer.rest:
        shown = [place for place, event in enumerate(events) if isinstance(event, Text | Reasoning)]
        for place in shown:
            said = cast("Text | Reasoning", events[place])
            logprobs = answer.spent_on(said.text, last=place == shown[-1])
            events[place] = type(said)(index, said.text, logprobs)
    return events


def _call_event(piece: CallPiece | ArgumentsPiece, index: int, answer: _Answer) -> Event:
    if isinstance(piece, ArgumentsPiece):
        return CallArguments(index, piece.call, piece.text)
    answer.calls += 1
    return CallStarted(index, piece.call, f"call_{secrets.token_hex(12)}", piece.name)
