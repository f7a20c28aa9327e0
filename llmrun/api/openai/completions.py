"""`/v1/completions`, a pure pair: body in, one request a prompt out; events in, reply or stream out."""

from __future__ import annotations

import math

from llmrun.api.gathered import Gathered, OfAnswer, limited
from llmrun.api.oneline import Json
from llmrun.api.openai.bodies import CompletionBody
from llmrun.api.openai.logprobs import LegacyLogprobs
from llmrun.api.openai.reply import ChunkStream, Head, Tally
from llmrun.types import (
    Event,
    Finished,
    GenerateRequest,
    Progress,
    PromptLogprobs,
    PromptToken,
    Stopped,
    Text,
)


def to_requests(body: CompletionBody, request_id: str) -> list[GenerateRequest]:
    """One request for each prompt, in order."""
    one = len(body.prompt) == 1
    chooses = body.tries > (body.n or 1)
    return [
        GenerateRequest(
            id=request_id if one else f"{request_id}-{number}",
            model=body.model,
            prompt=prompt,
            options=body.options(),
            logit_bias=body.logit_bias or {},
            client=body.user or "",
            priority=body.priority or 0,
            overflow=body.context_overflow or "error",
            n=body.tries,
            logprobs=0 if chooses and body.logprobs is None else body.logprobs,
            echo=bool(body.echo),
            output_format=body.output_format(),
            suffix=body.suffix or None,
            **body.wishes(),
        )
        for number, prompt in enumerate(body.prompt)
    ]


class CompletionReply:
    """The whole reply, folded from the events of all its requests."""

    def __init__(self, head: Head, body: CompletionBody) -> None:
        self._head = head.fields("text_completion")
        self._n = body.n or 1
        self._asked = body.prompt
        self._wants_logprobs = body.logprobs is not None
        self._answers = [[Gathered() for _ in range(body.tries)] for _ in body.prompt]
        self._prompts: list[list[PromptToken]] = [[] for _ in body.prompt]
        self._tally = Tally()

    def add(self, request: int, event: Event) -> None:
        if isinstance(event, OfAnswer):
            self._answers[request][event.index].add(event)
        elif isinstance(event, PromptLogprobs):
            self._prompts[request].extend(event.tokens)
        elif isinstance(event, Finished):
            self._tally.add(event)

    def body(self) -> Json:
        choices: list[Json] = []
        for asked, prompt, answers in zip(self._asked, self._prompts, self._answers, strict=True):
            for answer in best(answers, self._n):
                logprobs = None
                if self._wants_logprobs:
                    logprobs = LegacyLogprobs(asked).take([*prompt, *answer.logprobs])
                choice = _choice(len(choices), answer.text, logprobs, answer.reason)
                choices.append({**choice, **limited(answer.limit)})
        usage, timings = self._tally.usage(), self._tally.timings()
        return {**self._head, "choices": choices, "usage": usage, "timings": timings}


def best(answers: list[Gathered], count: int) -> list[Gathered]:
    """The `count` answers of the highest mean log probability, in that order; all of them as they are.

    An answer without a token has none, and comes last.
    """
    if count == len(answers):
        return answers

    def mean(answer: Gathered) -> float:
        numbers = [token.logprob for token in answer.logprobs]
        return sum(numbers) / len(numbers) if numbers else -math.inf

    return sorted(answers, key=mean, reverse=True)[:count]


class CompletionStream:
    """The same reply as chunks, one choice each. Each call returns the bytes to send, often none."""

    def __init__(self, head: Head, body: CompletionBody) -> None:
        self._n = body.n or 1
        self._chunks = ChunkStream(
            head.fields("text_completion"),
            body.wants_usage,
            wants_timings=body.wants_timings,
            choices=self._n,
        )
        self._wants_progress = body.wants_progress
        self._logprobs: list[LegacyLogprobs] | None = None
        if body.logprobs is not None:
            self._logprobs = [LegacyLogprobs(prompt) for prompt in body.prompt for _ in range(self._n)]

    def event(self, request: int, event: Event) -> bytes:
        self._chunks.note(request, event)
        if isinstance(event, Text):
            return self._text(request * self._n + event.index, event)
        if isinstance(event, PromptLogprobs):
            first = request * self._n
            return b"".join(self._scores(first + index, event) for index in range(self._n))
        if isinstance(event, Stopped):
            choice = _choice(request * self._n + event.index, "", None, event.reason)
            return self._chunks.hold({**choice, **limited(event.limit)})
        if isinstance(event, Progress) and self._wants_progress:
            return self._chunks.progress(event)
        if isinstance(event, Finished):
            self._chunks.finished(event)
        return b""

    def end(self) -> bytes:
        return self._chunks.end()

    def _scores(self, choice: int, event: PromptLogprobs) -> bytes:
        """A chunk of no text: that of the prompt came in one piece before."""
        assert self._logprobs is not None
        return self._chunks.chunk(_choice(choice, "", self._logprobs[choice].take(event.tokens)))

    def _text(self, choice: int, event: Text) -> bytes:
        logprobs = None
        if self._logprobs and event.logprobs:
            logprobs = self._logprobs[choice].take(event.logprobs)
        elif not event.text:
            return b""
        return self._chunks.chunk(_choice(choice, event.text, logprobs))


def _choice(index: int, text: str, logprobs: Json | None, reason: str | None = None) -> Json:
    return {"index": index, "text": text, "logprobs": logprobs, "finish_reason": reason}
