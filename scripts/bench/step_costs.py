"""What a step costs by its prompt tokens, by the answers beside them and by the cells in use.

Each round computes every kind of step once on the real context, so that a busy neighbour spoils all alike.
Prints a Markdown table for each number of answers and of cells: medians, prompt tokens a second, and what
share of the best row's that is. It is what `llmrun/engine/budget.py` has to learn from the steps it sees.

    .venv/bin/python scripts/bench/step_costs.py [MODEL.gguf] [--rounds 5] [--answers 0 3] [--cells 0 3000]

`--alone` computes on one thread and counts the CPU's time, not the clock's, which holds beside busy
neighbours too.
"""

from __future__ import annotations

import argparse
import os
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from statistics import median

import numpy as np

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.llama import Batch, Context, ContextSettings, DecodeStatus, Model
from llmrun.store import Store

CHUNKS = (0, 8, 16, 32, 64, 96, 128, 192, 256, 384, 512)
ANSWER = 64  # cells of an answer that is decoding


class Steps:
    """One context with answers in the first slots, a filler in the next and a prompt in the last."""

    def __init__(
        self, model: Model, batch: int, threads: int, answers: int, cells: int, clock: Callable[[], float]
    ) -> None:
        self.answers, self._batch, self._clock = answers, Batch(batch + answers), clock
        settings = ContextSettings(
            ctx=cells + batch + (ANSWER + 64) * (answers + 1),
            batch=batch + answers,
            slots=answers + 2,
            threads=threads,
            threads_batch=threads,
        )
        self._context = Context(model, settings)
        self._words = np.arange(1000, 1000 + max(batch, ANSWER), dtype=np.int32)
        for slot in range(answers):
            self._compute([(slot, 0, ANSWER)])
        self._cells = cells
        for start in range(0, cells, batch):
            self._compute([(answers + 1, start, min(batch, cells - start))])

    def seconds(self, chunk: int) -> float:
        """Of a step of one row for each answer and `chunk` tokens of the prompt."""
        rows = [(slot, ANSWER, 1) for slot in range(self.answers)]
        took = self._compute([*rows, (self.answers + 1, self._cells, chunk)])
        for slot in range(self.answers):
            self._context.trim(slot, ANSWER)
        self._context.trim(self.answers + 1, self._cells)
        return took

    def close(self) -> None:
        self._context.close()

    def _compute(self, rows: list[tuple[int, int, int]]) -> float:
        self._batch.clear()
        for slot, start, count in rows:
            self._batch.add(self._words[:count], start, slot, int(slot < self.answers))
        began = self._clock()
        status = self._context.decode(self._batch)
        took = self._clock() - began
        assert status is DecodeStatus.OK
        return took


def show(took: dict[int, list[float]], answers: int, cells: int) -> None:
    print(f"\n{answers} answers, {cells} cells in use\n")
    print("| prompt tokens | ms | tokens/s | of the best |\n| --- | --- | --- | --- |")
    times = {chunk: median(one) for chunk, one in took.items()}
    best = max(chunk / seconds for chunk, seconds in times.items())
    for chunk, seconds in times.items():
        speed = chunk / seconds
        print(f"| {chunk} | {seconds * 1e3:.1f} | {speed:.0f} | {speed / best:.0%} |")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--answers", type=int, nargs="*", default=[0, 3])
    parser.add_argument("--cells", type=int, nargs="*", default=[0, 3000])
    parser.add_argument("--chunks", type=int, nargs="*", default=list(CHUNKS))
    parser.add_argument("--alone", action="store_true")
    asked = parser.parse_args()
    clock = time.perf_counter
    if asked.alone:
        asked.threads, clock = 1, time.thread_time  # on one thread the caller's computes
    path = asked.model or Store(Paths.find()).resolve(DEFAULT_MODEL).path
    model = Model(path)
    print(f"{path.name}, {asked.threads} threads, {asked.rounds} rounds, load {os.getloadavg()[0]:.1f}")
    for cells in asked.cells:
        for answers in asked.answers:
            steps = Steps(model, max(asked.chunks), asked.threads, answers, cells, clock)
            took: dict[int, list[float]] = defaultdict(list)
            for turn in range(asked.rounds + 1):
                for chunk in asked.chunks:
                    if chunk or answers:
                        seconds = steps.seconds(chunk)
                        if turn:  # the first warms up
                            took[chunk].append(seconds)
            steps.close()
            show(took, answers, cells)
    model.close()


if __name__ == "__main__":
    main()
