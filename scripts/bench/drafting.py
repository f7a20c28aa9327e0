"""What guessing ahead from repeated text brings, and what it costs where nothing repeats.

Two engines over one model, one with drafts and one without, take turns on the same requests, greedy, one at a
time. Prints a table of medians, and whether both said the same (rounding may decide ties otherwise).

    .venv/bin/python scripts/bench/drafting.py [MODEL.gguf] [--rounds 5] [--tokens 100]
    .venv/bin/python scripts/bench/drafting.py --index      what finding guesses costs a token

Judge copying on a Q8_0: below that the default model does not copy well.
"""

from __future__ import annotations

import argparse
import os
import random
import threading
import time
from pathlib import Path
from statistics import median

import numpy as np

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.engine import Engine, EngineRequest
from llmrun.engine.drafting import Ngrams
from llmrun.engine.drafting.earlier import Earlier
from llmrun.engine.drafting.ngrams import MANY, Copying
from llmrun.llama import Context, ContextSettings, Model
from llmrun.store import Store
from llmrun.types import Event, Failed, Finished, SamplingParams, Text

CTX = 4096
TEXT = """The inventory of the old lighthouse, written down in the spring of 1911:
seven brass lamps, four of them dented; one barometer by Negretti & Zambra; thirty-two fathoms of rope;
a chest with the keeper's papers; two stuffed gulls; and a clock that had not been wound for nine years.
In the cellar: nine barrels of oil, a broken oar, and a box of candles that the mice had found first."""
PROMPTS = {
    "copies a text": (
        f"<|im_start|>user\nCopy this text word for word.\n\n{TEXT}<|im_end|>\n"
        f"<|im_start|>assistant\n{TEXT[:37]}"
    ),
    "repeats nothing": (
        "<|im_start|>user\nTell a story about a lighthouse, every sentence about something new.<|im_end|>\n"
        "<|im_start|>assistant\n"
    ),
}


class Side:
    """An engine on its thread, and how long it took for its last request."""

    def __init__(self, model: Model, threads: int, drafts: bool) -> None:
        self._context = Context(
            model, ContextSettings(ctx=CTX, batch=512, slots=4, threads=threads, threads_batch=threads)
        )
        self._ended = threading.Event()
        self._text = ""
        self._finished: Finished | None = None
        self.engine = Engine(
            self._context,
            batch=512,
            parallel=1,
            emit=self._take,
            clock=time.monotonic,
            drafters=(Ngrams(CTX),) if drafts else (),
        )
        self._thread = threading.Thread(target=self.engine.run)
        self._thread.start()

    def _take(self, events: list[tuple[str, Event]]) -> None:
        for _, event in events:
            if isinstance(event, Text):
                self._text += event.text
            elif isinstance(event, Finished):
                self._finished = event
            if isinstance(event, Finished | Failed):
                self._ended.set()

    def ask(self, prompt: tuple[int, ...], params: SamplingParams, tokens: int) -> tuple[str, Finished]:
        self._text, self._finished = "", None
        self._ended.clear()
        request = EngineRequest(
            id="r", prompt=prompt, params=params, seed=1, arrived=time.monotonic(), max_tokens=tokens
        )
        self.engine.submit(request)
        self._ended.wait()
        assert self._finished is not None
        return self._text, self._finished

    def close(self) -> None:
        self.engine.stop()
        self._thread.join()


def compare(model: Model, rounds: int, tokens: int, threads: int) -> None:
    sides = {False: Side(model, threads, False), True: Side(model, threads, True)}
    # Of a fixed length, so that speeds compare.
    greedy = SamplingParams(temperature=0, logit_bias=dict.fromkeys(model.vocab.eog_tokens, -100.0))
    print("| prompt | tokens/s without | with | ratio | guessed | right | same text |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, prompt in PROMPTS.items():
        ids = tuple(model.vocab.tokenize(prompt, special=True))
        speeds: dict[bool, list[float]] = {False: [], True: []}
        texts, last = {}, None
        for number in range(rounds):
            for drafts in (False, True) if number % 2 else (True, False):
                texts[drafts], done = sides[drafts].ask(ids, greedy, tokens)
                speeds[drafts].append((done.usage.completion - 1) / done.timings.decode_ms * 1e3)
                last = done.usage if drafts else last
        assert last is not None
        without, with_drafts = median(speeds[False]), median(speeds[True])
        ratio = median(a / b for a, b in zip(speeds[True], speeds[False], strict=True))
        same = "yes" if texts[True] == texts[False] else "no"
        figures = f"{without:.0f} | {with_drafts:.0f} | {ratio:.2f} | {last.drafted} | {last.accepted}"
        print(f"| {name} | {figures} | {same} |")
    for side in sides.values():
        side.close()


def index() -> None:
    rng = random.Random(0)
    prompt = np.array([rng.randrange(50_000) for _ in range(100_000)], np.int32)
    said = [rng.randrange(50_000) for _ in range(20_000)] + prompt[:20_000].tolist()
    began = time.thread_time()
    copying = Copying(prompt, len(prompt) + len(said), Earlier(MANY))
    built = time.thread_time()
    copying.extend(said)
    ended = time.thread_time()
    print(f"{(built - began) / len(prompt) * 1e6:.2f} µs a token of the prompt")
    print(f"{(ended - built) / len(said) * 1e6:.2f} µs a token said")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("model", type=Path, nargs="?")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tokens", type=int, default=100)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--index", action="store_true")
    asked = parser.parse_args()
    if asked.index:
        index()
        return
    print(f"load {os.getloadavg()[0]:.1f}", flush=True)
    model = Model(asked.model or Store(Paths.find()).resolve(DEFAULT_MODEL).path)
    compare(model, asked.rounds, asked.tokens, asked.threads)
    model.close()


if __name__ == "__main__":
    main()
