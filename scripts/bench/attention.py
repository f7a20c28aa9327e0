"""What KV layout and flash attention make of a step's time. Prints a Markdown table of milliseconds.

    .venv/bin/python scripts/bench/attention.py [MODEL.gguf] [--depths 128 512 2048] [--rounds 5]

One thread, and its time on the CPU, so that a busy machine spoils little. Every way is measured in turn, in
each of the rounds: medians. A row for each of: the last tokens of a prompt of that depth; a step of one
answer behind so many tokens, alone and where seven ended ones of that length are kept in the cache; of eight
answers, all different; of eight that have so many in common.

    … --neighbours

What comes beside an answer, instead: the largest difference of any logit of its next token, alone and beside
seven others, behind the first of the depths.
"""

from __future__ import annotations

import argparse
import itertools
import os
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import numpy as np

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.llama import Batch, Context, ContextSettings, DecodeStatus, Model
from llmrun.store import Store

ANSWERS = 8
STEPS = 8
CHUNK = 256
WAYS = list(itertools.product((True, False), (True, False)))  # unified, flash attention


@contextmanager
def opened(model: Model, depth: int, unified: bool, flash: bool) -> Iterator[Context]:
    room = depth + 2 * STEPS
    settings = ContextSettings(
        ctx=room * ANSWERS if unified else room,
        batch=CHUNK,
        slots=ANSWERS,
        threads=1,
        threads_batch=1,
        unified=unified,
        flash_attention=flash,
    )
    context = Context(model, settings)
    yield context
    context.close()


def decode(context: Context, batch: Batch) -> float:
    began = time.thread_time()
    status = context.decode(batch)
    assert status is DecodeStatus.OK, status
    return time.thread_time() - began


def prefill(context: Context, tokens: np.ndarray, slot: int) -> float:
    """Seconds of the last chunk."""
    batch, seconds = Batch(CHUNK), 0.0
    for start in range(0, len(tokens), CHUNK):
        batch.clear()
        batch.add(tokens[start : start + CHUNK], start, slot, outputs=1)
        seconds = decode(context, batch)
    return seconds


def answer(context: Context, tokens: np.ndarray, slots: range) -> float:
    """Median seconds of a step in which each slot gets one more token."""
    batch, times = Batch(CHUNK), []
    starts = [context.length(slot) for slot in slots]
    for step in range(STEPS):
        batch.clear()
        for slot, start in zip(slots, starts, strict=True):
            batch.add(tokens[step + slot : step + slot + 1], start + step, slot, outputs=1)
        times.append(decode(context, batch))
    for slot, start in zip(slots, starts, strict=True):
        context.trim(slot, start)
    return median(times)


def figures(context: Context, depth: int, rng: np.random.Generator) -> dict[str, float]:
    vocab = context.model.vocab.size
    tokens = rng.integers(10, vocab - 10, depth).astype(np.int32)
    found = {f"prompt, last {min(depth, CHUNK)}": prefill(context, tokens, 0)}
    found["1 answer"] = answer(context, tokens, range(1))
    state = context.save(0)
    for slot in range(1, ANSWERS):
        context.restore(slot, state)  # into cells of its own
    found["1 answer, 7 texts kept"] = answer(context, tokens, range(1))
    found["8 answers"] = answer(context, tokens, range(ANSWERS))
    for slot in range(1, ANSWERS):
        context.drop(slot)
        context.share(0, slot, depth)
    found["8 answers, shared"] = answer(context, tokens, range(ANSWERS))
    return found


def moved(context: Context, depth: int, rng: np.random.Generator) -> float:
    """How far neighbours, which came before it, move a logit of the last slot's next token."""
    prompts = [
        rng.integers(10, context.model.vocab.size - 10, depth).astype(np.int32) for _ in range(ANSWERS)
    ]
    batch, seen, last = Batch(CHUNK), [], ANSWERS - 1
    for slots in (range(last, ANSWERS), range(ANSWERS)):
        context.drop(last)
        for slot in slots:
            prefill(context, prompts[slot], slot)
        batch.clear()
        for slot in slots:
            batch.add(prompts[slot][:1], depth, slot, outputs=1)
        decode(context, batch)
        seen.append(context.logits(len(slots) - 1).copy())
    return float(np.abs(seen[0] - seen[1]).max())


def compare_neighbours(model: Model, depth: int) -> None:
    """Print a table of what `moved` finds in each way."""
    print("| | with flash attention | without |\n| --- | --- | --- |")
    for layout in (True, False):
        cells = []
        for flash in (True, False):
            with opened(model, depth, layout, flash) as context:
                cells.append(f"{moved(context, depth, np.random.default_rng(0)):.2g}")
        print(f"| {'unified' if layout else 'separate'} | {' | '.join(cells)} |", flush=True)


def compare_times(model: Model, depths: Sequence[int], rounds: int) -> None:
    """Print a table of what `figures` finds in each way."""
    print(f"load {os.getloadavg()[0]:.1f}; with flash attention and without, unified and separate\n")
    print("| tokens before | | unified, with | unified, without | separate, with | separate, without |")
    print("| --- | --- | --- | --- | --- | --- |")
    for depth in depths:
        times: dict[str, list[list[float]]] = defaultdict(lambda: [[] for _ in WAYS])
        for turn in range(rounds):
            for place, (unified, flash) in enumerate(WAYS):
                with opened(model, depth, unified, flash) as context:
                    for what, seconds in figures(context, depth, np.random.default_rng(turn)).items():
                        times[what][place].append(seconds)
        for what, each in times.items():
            cells = " | ".join(f"{median(one) * 1e3:.1f}" for one in each)
            print(f"| {depth} | {what} | {cells} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--depths", type=int, nargs="+", default=[128, 512, 2048])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--neighbours", action="store_true")
    chosen = parser.parse_args()
    model = Model(chosen.model or Store(Paths.find()).resolve(DEFAULT_MODEL).path)
    if chosen.neighbours:
        compare_neighbours(model, chosen.depths[0])
    else:
        compare_times(model, chosen.depths, chosen.rounds)
    model.close()


if __name__ == "__main__":
    main()
