"""A prompt of 3,000 tokens arrives beside three running answers, and a short one behind it, in one process.

The engine computes on one thread and its clock is that thread's processor time, so that the figures hold
beside busy neighbours too. The same long prompt alone is what its time to first token is compared with.

    .venv/bin/python scripts/bench/arrival.py [MODEL.gguf] [--rounds 3] [--tokens 3000] [--answers 3]
"""

from __future__ import annotations

import argparse
import itertools
import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

import numpy as np

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.engine import Engine, EngineRequest
from llmrun.engine.drafting import Ngrams
from llmrun.llama import Context, ContextSettings, Model
from llmrun.store import Store
from llmrun.types import Event, Failed, Finished, SamplingParams, Text

CTX, BATCH = 8192, 512
BEFORE = 16  # tokens that each answer has said when the prompt comes


@dataclass
class Asked:
    """When a request was made, and when its tokens came, by the engine's clock."""

    sent: float
    arrivals: list[float] = field(default_factory=list)
    ended: bool = False

    @property
    def ttft(self) -> float:
        return self.arrivals[0] - self.sent


class Bench:
    """An engine on its thread, of whose requests the times are noted."""

    def __init__(self, model: Model, answers: int) -> None:
        self._rng = np.random.default_rng(5)
        self._words = [t for t in range(1000, 40_000) if t not in model.vocab.eog_tokens]
        self._no_end = dict.fromkeys(model.vocab.eog_tokens, -100.0)
        self._context = Context(
            model, ContextSettings(ctx=CTX, batch=BATCH, slots=answers + 10, threads=1, threads_batch=1)
        )
        self.engine = Engine(
            self._context,
            batch=BATCH,
            parallel=answers + 2,
            emit=self._take,
            clock=time.thread_time,
            drafters=(Ngrams(CTX),),
        )
        self._seen = threading.Condition()
        self._now = 0.0
        self._asked: dict[str, Asked] = {}
        self._thread = threading.Thread(target=self.engine.run)
        self._thread.start()

    def _take(self, events: list[tuple[str, Event]]) -> None:
        now = time.thread_time()  # of the engine's thread, which calls this
        with self._seen:
            for name, event in events:
                asked = self._asked[name]
                asked.ended |= isinstance(event, Finished | Failed)
                if isinstance(event, Text):
                    asked.arrivals.append(now)
            self._now = now
            self._seen.notify_all()

    def submit(self, name: str, prompt_tokens: int, tokens: int) -> Asked:
        with self._seen:
            asked = self._asked[name] = Asked(self._now)
        prompt = tuple(int(t) for t in self._rng.choice(self._words, prompt_tokens))
        params = SamplingParams(temperature=0, logit_bias=self._no_end)
        self.engine.submit(
            EngineRequest(
                id=name, prompt=prompt, params=params, seed=1, arrived=time.monotonic(), max_tokens=tokens
            )
        )
        return asked

    def wait(self, *asked: Asked, said: int | None = None) -> None:
        """Until each has ended, or said so many tokens."""
        with self._seen:
            self._seen.wait_for(
                lambda: all(a.ended if said is None else len(a.arrivals) >= said for a in asked)
            )

    def close(self) -> None:
        self.engine.stop()
        self._thread.join()
        self._context.close()


def turn(bench: Bench, number: int, answers: int, tokens: int) -> dict[str, float]:
    alone = bench.submit(f"alone {number}", tokens, 1)
    bench.wait(alone)
    running = [bench.submit(f"answer {number}.{i}", 40, 1500) for i in range(answers)]
    bench.wait(*running, said=BEFORE)
    before = bench.engine.counters.steps
    long = bench.submit(f"long {number}", tokens, 2)
    short = bench.submit(f"short {number}", 12, 2)
    bench.wait(long, short)
    steps = bench.engine.counters.steps - before
    gaps = [
        b - a
        for one in running
        for a, b in itertools.pairwise(one.arrivals)
        if long.sent < b <= long.arrivals[0]
    ]
    for one in (f"answer {number}.{i}" for i in range(answers)):
        bench.engine.cancel(one)
    bench.wait(*running)
    return {
        "alone: TTFT s": alone.ttft,
        "beside answers: TTFT s": long.ttft,
        "times that alone": long.ttft / alone.ttft,
        "short prompt: TTFT s": short.ttft,
        "median ITL s": median(gaps),
        "worst ITL s": max(gaps),
        "steps": steps,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=3000)
    parser.add_argument("--answers", type=int, default=3)
    asked = parser.parse_args()
    path = asked.model or Store(Paths.find()).resolve(DEFAULT_MODEL).path
    model = Model(path)
    bench = Bench(model, asked.answers)
    rounds = [turn(bench, number, asked.answers, asked.tokens) for number in range(asked.rounds)]
    bench.close()
    model.close()
    print(f"{path.name}, a prompt of {asked.tokens} tokens, {asked.answers} answers, one thread\n")
    print(f"| figure | {' | '.join(f'round {n + 1}' for n in range(len(rounds)))} |")
    print(f"| --- |{' --- |' * len(rounds)}")
    for name in rounds[0]:
        print(f"| {name} | {' | '.join(f'{one[name]:.3g}' for one in rounds)} |")


if __name__ == "__main__":
    main()
