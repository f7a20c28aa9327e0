"""How much of a decode step is our own: the time beyond llama_decode and native sampling.

Runs the real engine on the default model at 1 and 8 sequences, with clocks around the two native calls.
The clocks' own cost counts as ours. Prints a Markdown table of medians over all decode steps.

    .venv/bin/python scripts/bench/decode_loop.py [MODEL.gguf]
"""

from __future__ import annotations

import sys
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np
import numpy.typing as npt

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.engine import Engine, EngineRequest
from llmrun.llama import Context, ContextSettings, DecodeStatus, Model, SamplerChain
from llmrun.llama.batch import Batch
from llmrun.store import Store
from llmrun.types import Event, Failed, Finished, SamplingParams

TOKENS = 200
PROMPT = "Tell me everything about the history of"
TOPICS = ["bread", "Rome", "glass", "chess", "maps", "tea", "clocks", "salt"]


class Clocks:
    """Seconds spent in native code since the last step."""

    def __init__(self) -> None:
        self.decode = self.sample = 0.0
        self.steps: list[tuple[float, float, float]] = []


class TimedContext(Context):
    clocks: Clocks

    def decode(self, batch: Batch) -> DecodeStatus:
        began = time.perf_counter()
        status = super().decode(batch)
        self.clocks.decode += time.perf_counter() - began
        return status


class TimedEngine(Engine):
    """Notes each decode step: whole, llama_decode, sampling."""

    clocks: Clocks

    def _step(self) -> None:
        decoding = all(s.decoding for s in self.scheduler.running) and not self.scheduler.waiting
        clocks = self.clocks
        clocks.decode = clocks.sample = 0.0
        began = time.perf_counter()
        super()._step()
        self._send()
        if decoding and clocks.decode:
            clocks.steps.append((time.perf_counter() - began, clocks.decode, clocks.sample))


def time_sampling(clocks: Clocks) -> None:
    plain = SamplerChain.pick

    def timed(self: SamplerChain, logits: npt.NDArray[np.float32]) -> int:
        began = time.perf_counter()
        token = plain(self, logits)
        clocks.sample += time.perf_counter() - began
        return token

    SamplerChain.pick = timed  # type: ignore[method-assign]  # timed from outside


def measure(model: Model, clocks: Clocks, threads: int, sequences: int) -> list[tuple[float, float, float]]:
    context = TimedContext(
        model, ContextSettings(ctx=4096, batch=512, slots=16, threads=threads, threads_batch=threads)
    )
    context.clocks = clocks
    ended = threading.Semaphore(0)

    def emit(events: list[tuple[str, Event]]) -> None:
        for _, event in events:
            if isinstance(event, Finished | Failed):
                ended.release()

    engine = TimedEngine(context, batch=512, parallel=8, emit=emit, clock=time.monotonic)
    engine.clocks = clocks
    thread = threading.Thread(target=engine.run)
    thread.start()
    for topic in TOPICS[:sequences]:
        engine.submit(
            EngineRequest(
                id=topic,
                prompt=tuple(model.vocab.tokenize(f"{PROMPT} {topic}", special=False)),
                params=SamplingParams(logit_bias=dict.fromkeys(model.vocab.eog_tokens, -100.0)),
                seed=1,
                arrived=time.monotonic(),
                max_tokens=TOKENS,
            )
        )
    for _ in range(sequences):
        ended.acquire()
    engine.stop()
    thread.join()
    context.close()
    steps, clocks.steps = clocks.steps, []
    return steps


def main() -> None:
    path = Path(sys.argv[1]) if len(sys.argv) > 1 else Store(Paths.find()).resolve(DEFAULT_MODEL).path
    model = Model(path)
    clocks = Clocks()
    time_sampling(clocks)
    print("| sequences | step ms | llama_decode ms | sampling ms | ours ms | ours share |")
    print("| --- | --- | --- | --- | --- | --- |")
    for sequences in (1, 8):
        steps = measure(model, clocks, 2, sequences)
        whole = median(step[0] for step in steps) * 1e3
        decode = median(step[1] for step in steps) * 1e3
        sample = median(step[2] for step in steps) * 1e3
        ours = median(step[0] - step[1] - step[2] for step in steps) * 1e3
        share = median((step[0] - step[1] - step[2]) / step[0] for step in steps)
        print(f"| {sequences} | {whole:.2f} | {decode:.2f} | {sample:.2f} | {ours:.3f} | {share:.1%} |")
    model.close()


if __name__ == "__main__":
    main()
