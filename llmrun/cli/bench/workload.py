"""The requests that `llmrun bench` measures: prompts and answers of an exact length."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise

from llmrun.cli.bench.figures import Sample
from llmrun.client.client import Client
from llmrun.errors import INTERNAL, LlmrunError
from llmrun.types import Options, Text

_STRIDE = 37  # a prime: prompts begin at places of the text that are all different


def text() -> str:
    """A text in the public domain: the beginnings of "Alice's Adventures in Wonderland" (Lewis Carroll) and
    "Moby-Dick" (Herman Melville), and Abraham Lincoln's address at Gettysburg."""
    return (files("llmrun.cli.bench") / "text.txt").read_text("utf-8")


class Prompts:
    """Prompts of the text's tokens, over and over, each from another place on, so that none begins like an
    earlier one."""

    def __init__(self, tokens: Sequence[int]) -> None:
        self._tokens = tokens
        self._next = 0

    def take(self, length: int) -> list[int]:
        """The next prompt, of that many tokens."""
        start = self._next * _STRIDE
        self._next += 1
        return [self._tokens[(start + place) % len(self._tokens)] for place in range(length)]


@dataclass(frozen=True)
class Workload:
    """Sends requests to one model of one daemon. `answer`: tokens of every answer."""

    client: Client
    model: str
    prompts: Prompts
    answer: int
    clock: Callable[[], float] = time.perf_counter

    def one(self, prompt: Sequence[int]) -> Sample:
        """One request, to its end."""
        options = Options(temperature=0.0, max_tokens=self.answer, ignore_eos=True)
        begun = self.clock()
        with self.client.complete(self.model, prompt, options) as reply:
            times = [self.clock() for part in reply.parts() if isinstance(part, Text)]
        usage, timings = reply.usage, reply.timings
        if usage is None or timings is None or not times:
            raise LlmrunError(INTERNAL, "the daemon sent an answer without text, usage or timings")
        return Sample(
            prompt=usage.prompt - usage.cached,
            completion=usage.completion,
            ttft_ms=(times[0] - begun) * 1e3,
            gaps_ms=tuple((later - earlier) * 1e3 for earlier, later in pairwise(times)),
            prefill_ms=timings.prefill_ms,
            decode_ms=timings.decode_ms,
        )

    def alone(self, length: int, times: int) -> list[Sample]:
        """Requests one after another, behind prompts of that length."""
        return [self.one(self.prompts.take(length)) for _ in range(times)]

    def together(self, at_once: int, length: int, each: int) -> tuple[list[Sample], float]:
        """`at_once` callers, each with `each` requests in turn; the samples, and the seconds for all."""
        work = [[self.prompts.take(length) for _ in range(each)] for _ in range(at_once)]
        samples: list[Sample] = []
        problems: list[BaseException] = []

        def call(prompts: Sequence[Sequence[int]]) -> None:
            try:
                samples.extend([self.one(prompt) for prompt in prompts])
            except BaseException as error:
                problems.append(error)

        callers = [threading.Thread(target=call, args=(prompts,), daemon=True) for prompts in work]
        begun = self.clock()
        for caller in callers:
            caller.start()
        for caller in callers:
            caller.join()
        if problems:
            raise problems[0]
        return samples, self.clock() - begun
