"""What `llmrun map` keeps of the engine's own batch throughput: the same short prompts through both.

The engine's is measured in this process: all prompts are rendered and tokenised before, then submitted at
once. That of map is the whole command as one types it, from its start to its end, against a daemon that has
the model loaded. Rounds alternate, each with prompts of its own. Prints a Markdown table.

    .venv/bin/python scripts/bench/map.py [--prompts 1000] [--tokens 16] [--rounds 3]
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import median

from llmrun.config import DEFAULT_MODEL, Paths, load_settings
from llmrun.daemon.prepare import content_version, prepare
from llmrun.engine import EngineRequest
from llmrun.runner.answers import Answers
from llmrun.runner.frames import Load
from llmrun.runner.loading import load
from llmrun.runner.texts import TextDesk
from llmrun.store import Store
from llmrun.types import Event, Failed, Finished, GenerateRequest, Message, Options

COMMAND = [sys.executable, "-m", "llmrun"]


class Engine:
    """The engine that a runner has, without the runner."""

    def __init__(self, home: Path) -> None:
        paths = Paths.find({"LLMRUN_HOME": str(home)})
        self._settings = load_settings(paths)
        self._stored = Store(paths).resolve(DEFAULT_MODEL)
        self._version = content_version(self._stored)
        self._tokens = 0
        self._ended = threading.Semaphore(0)
        _, spec = self._prepared("hi", 1)
        self._loaded = load(spec, self._emit, lambda _fraction: None)
        assert self._loaded.engine is not None
        self._engine = self._loaded.engine
        loaded = self._loaded
        self._texts = TextDesk(
            loaded.model, loaded.info, loaded.prompter, loaded.grammars, Answers(), time.monotonic
        )
        self._thread = threading.Thread(target=self._engine.run)
        self._thread.start()

    def _prepared(self, prompt: str, tokens: int) -> tuple[GenerateRequest, Load]:
        request = GenerateRequest(
            id=prompt,
            model=DEFAULT_MODEL,
            messages=(Message(role="user", content=prompt),),
            options=Options(temperature=0.0, max_tokens=tokens),
        )
        return prepare(request, self._stored, self._version, self._settings)

    def _emit(self, events: list[tuple[str, Event]]) -> None:
        for _, event in events:
            if isinstance(event, Finished):
                self._tokens += event.usage.completion
            if isinstance(event, Finished | Failed):
                self._ended.release()

    def rate(self, prompts: list[str], tokens: int) -> float:
        """Completion tokens a second over all of the prompts."""
        made: list[EngineRequest] = []
        for prompt in prompts:
            request, _ = self._prepared(prompt, tokens)
            made.append(self._texts.writing(request, time.monotonic()))
        self._tokens = 0
        began = time.perf_counter()
        for one in made:
            self._engine.submit(one)
        for _ in made:
            self._ended.acquire()
        return self._tokens / (time.perf_counter() - began)

    def close(self) -> None:
        self._engine.stop()
        self._thread.join()
        self._loaded.close()


def map_rate(env: dict[str, str], prompts: list[str], tokens: int) -> float:
    """Completion tokens a second of the whole command."""
    words = ("map", DEFAULT_MODEL, "{}", "--temperature", "0", "--max-tokens", str(tokens))
    began = time.perf_counter()
    done = subprocess.run(
        [*COMMAND, *words], env=env, input="\n".join(prompts), capture_output=True, text=True, check=True
    )
    took = time.perf_counter() - began
    made: list[int] = [json.loads(line)["usage"]["completion"] for line in done.stdout.splitlines()]
    return sum(made) / took


def main() -> None:
    parser = argparse.ArgumentParser()
    for name, value in (("prompts", 1000), ("tokens", 16), ("rounds", 3)):
        parser.add_argument(f"--{name}", type=int, default=value)
    asked = parser.parse_args()
    model = Store(Paths.find()).resolve(DEFAULT_MODEL).path
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        Store(Paths.find({"LLMRUN_HOME": folder})).copy(str(model), DEFAULT_MODEL)
        env = {**os.environ, "LLMRUN_HOME": folder, "LLMRUN_HOST": "127.0.0.1:0", "LLMRUN_CACHE_DISK": "0"}
        os.environ["LLMRUN_CACHE_DISK"] = "0"
        engine = Engine(home)
        try:
            map_rate(env, ["hi"], 1)  # starts the daemon, and loads the model
            print("| round | engine, tokens/s | map, tokens/s | ratio |\n| --- | --- | --- | --- |")
            ratios = []
            for number in range(asked.rounds):
                named = [f"Name a thing of colour {number}.{at}." for at in range(asked.prompts)]
                own, mapped = engine.rate(named, asked.tokens), map_rate(env, named, asked.tokens)
                ratios.append(mapped / own)
                print(f"| {number + 1} | {own:.0f} | {mapped:.0f} | {mapped / own:.2f} |", flush=True)
            print(f"| median | | | {median(ratios):.2f} |")
        finally:
            engine.close()
            subprocess.run([*COMMAND, "stop", "--daemon"], env=env, check=False, capture_output=True)


if __name__ == "__main__":
    main()
