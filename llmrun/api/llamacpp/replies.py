"""Replies of `/completion` and `/infill`: events in, one body or a stream out.

A stream's parts carry new text; the last part of each answer has no text and says all else.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from llmrun.api import sse
from llmrun.api.gathered import limited
from llmrun.api.llamacpp.bodies import Completing
from llmrun.api.llamacpp.probabilities import probabilities
from llmrun.api.oneline import Json
from llmrun.api.timings import TimingsSoFar, llama_timings, prompt_progress
from llmrun.types import (
    Event,
    Finished,
    Progress,
    Rendered,
    Started,
    Stopped,
    Text,
    TokenLogprob,
    Usage,
)

_NO_SLOT = -1  # llama-server numbers the places for answers; here there are none


@dataclass(frozen=True)
class Asked:
    """What a reply needs of its question.

    settings  `generation_settings` of each request
    window    tokens of context that the model has now, where that is known
    """

    body: Completing
    model: str
    settings: Sequence[Json]
    window: Callable[[], int | None]


@dataclass
class _Answer:
    """One answer so far."""

    text: list[str] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    has_new_line: bool = False
    stopped: Stopped | None = None

    def add(self, event: Text) -> None:
        self.text.append(event.text)
        self.tokens += event.tokens
        self.logprobs += event.logprobs
        self.has_new_line = self.has_new_line or "\n" in event.text


@dataclass
class _Question:
    """One request so far: its prompt and its answers."""

    answers: list[_Answer]
    started: Started = field(default_factory=lambda: Started(0, 0))
    prompt: str = ""


class _Completion:
    """What is known of every request of a body, kept up from its events."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked
        self._count = asked.body.answers
        self._timings = TimingsSoFar()
        self._questions = [
            _Question([_Answer() for _ in range(self._count)]) for _ in range(len(asked.settings))
        ]

    def take(self, number: int, event: Event) -> None:
        self._timings.take(number, event)
        question = self._questions[number]
        match event:
            case Started():
                question.started = event
            case Rendered():
                question.prompt = event.text
            case Text():
                question.answers[event.index].add(event)
            case Stopped():
                question.answers[event.index].stopped = event

    def answer(self, number: int, index: int) -> _Answer:
        return self._questions[number].answers[index]

    def place(self, number: int, index: int) -> int:
        """The number of an answer among all of the body's."""
        return number * self._count + index

    def final(self, number: int, index: int, finished: Finished, rest: Json) -> Json:
        """All that is said of an answer at its end; `rest` has its text."""
        question = self._questions[number]
        answer = question.answers[index]
        stopped = answer.stopped
        assert stopped is not None  # an answer ends before its request does
        evaluated, said = question.started.prompt_tokens, finished.usage
        completion = len(stopped.tokens) + stopped.left_out - evaluated
        truncated = said.truncated + stopped.left_out
        usage = Usage(prompt=evaluated, completion=completion, cached=said.cached, truncated=truncated)
        window = self._asked.window()
        whole = {
            "index": self.place(number, index),
            **rest,
            "id_slot": _NO_SLOT,
            "stop": True,
            "model": self._asked.model,
            "tokens_predicted": usage.completion,
            "tokens_evaluated": evaluated,
            "generation_settings": {
                **self._asked.settings[number],
                "n_ctx": window,
                "seed": question.started.seed + index,
            },
            "prompt": question.prompt,
            "has_new_line": answer.has_new_line,
            "truncated": bool(usage.truncated) or stopped.limit == "context",
            "stop_type": _stop_type(stopped),
            **limited(stopped.limit),
            "stopping_word": stopped.stop_sequence or "",
            "tokens_cached": usage.cached,
            "timings": llama_timings(usage, finished.timings),
        }
        wanted = self._asked.body.response_fields
        return _chosen(whole, wanted) if wanted else whole

    def part(self, number: int, index: int, rest: Json) -> Json:
        """What a part of a stream says beside its text."""
        question = self._questions[number]
        answer, evaluated = question.answers[index], question.started.prompt_tokens
        part = {
            "index": self.place(number, index),
            **rest,
            "stop": False,
            "id_slot": _NO_SLOT,
            "tokens_predicted": len(answer.tokens),
            "tokens_evaluated": evaluated,
        }
        if self._asked.body.timings_per_token:
            part["timings"] = self._timings.of(number, index)
        return part


class CompletionReply:
    """The whole reply: an object, or a list of them where more than one answer was asked for."""

    def __init__(self, asked: Asked) -> None:
        self._state = _Completion(asked)
        self._asked = asked
        self._done: list[tuple[int, Json]] = []

    def add(self, number: int, event: Event) -> None:
        self._state.take(number, event)
        if isinstance(event, Finished):
            for index in range(self._asked.body.answers):
                answer = self._state.answer(number, index)
                final = self._state.final(number, index, event, self._rest(answer))
                self._done.append((self._state.place(number, index), final))

    def body(self) -> Json | list[Json]:
        done = [final for _, final in sorted(self._done, key=lambda item: item[0])]
        return done if len(done) != 1 else done[0]

    def _rest(self, answer: _Answer) -> Json:
        tokens = answer.tokens if self._asked.body.return_tokens else []
        rest: Json = {"content": "".join(answer.text), "tokens": tokens}
        if self._asked.body.alternatives:
            rest["completion_probabilities"] = probabilities(answer.logprobs, self._asked.body)
        return rest


class CompletionStream:
    """The same as a stream. Each call returns the bytes to send, often none."""

    def __init__(self, asked: Asked) -> None:
        self._state = _Completion(asked)
        self._asked = asked

    def event(self, number: int, event: Event) -> bytes:
        self._state.take(number, event)
        if isinstance(event, Text):
            return self._text(number, event)
        if isinstance(event, Progress) and self._asked.body.return_progress:
            progress = prompt_progress(event.processed, event.total, event.cached, event.elapsed_ms)
            rest: Json = {"content": "", "tokens": [], "prompt_progress": progress}
            return sse.event(self._state.part(number, 0, rest))
        if isinstance(event, Finished):
            empty: Json = {"content": "", "tokens": []}
            finals = (self._state.final(number, i, event, empty) for i in range(self._asked.body.answers))
            return b"".join(map(sse.event, finals))
        return b""

    def end(self) -> bytes:
        """Nothing: the last part of the last answer is the end."""
        return b""

    def _text(self, number: int, event: Text) -> bytes:
        if not (event.text or event.logprobs):
            return b""
        rest: Json = {"content": event.text, "tokens": list(event.tokens)}
        if self._asked.body.alternatives:
            rest["completion_probabilities"] = probabilities(event.logprobs, self._asked.body)
        return sse.event(self._state.part(number, event.index, rest))


def _stop_type(stopped: Stopped) -> str:
    if stopped.reason == "length":
        return "limit"
    return "eos" if stopped.stop_sequence is None else "word"


def _chosen(whole: Json, names: Sequence[str]) -> Json:
    """The fields that `names` name, each under its name; one that is not there is left out."""
    chosen: Json = {}
    for name in names:
        value: object = whole
        for key in name.split("/"):
            if not isinstance(value, dict) or key not in value:
                break
            value = value[key]
        else:
            chosen[name] = value
    return chosen
