"""`llmrun map` over the real daemon and the real model. Steps are counted: seconds depend on the machine."""

from __future__ import annotations

import json

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually

pytestmark = pytest.mark.real

LINES = 200
TOKENS = 6
OPTIONS = ("--max-tokens", str(TOKENS), "--temperature", "0")


def steps(daemon: Daemon) -> int:
    """The engine's steps so far, once it rests and has said so."""
    seen: list[int] = []

    def settled() -> bool:
        (loaded,) = daemon.loaded()
        seen.append(loaded["stats"]["steps"])
        return daemon.is_at_rest() and len(seen) > 20 and len(set(seen[-20:])) == 1

    assert eventually(settled, 20)
    return seen[-1]


def test_map_of_200_prompts_comes_back_in_order_and_shares_steps(daemon: Daemon) -> None:
    lines = [f"Name a thing of colour {number}." for number in range(LINES)]
    assert daemon.run("run", DEFAULT_MODEL, "hi", *OPTIONS).returncode == 0
    before = steps(daemon)
    ended = daemon.run("map", DEFAULT_MODEL, "{}", *OPTIONS, stdin="\n".join(lines).encode())
    assert ended.returncode == 0, ended.stderr
    records = [json.loads(line) for line in ended.stdout.splitlines()]
    assert [record["index"] for record in records] == list(range(LINES))
    assert [record["input"] for record in records] == lines
    assert all(record["output"] and record["usage"]["completion"] <= TOKENS for record in records)
    used = steps(daemon) - before
    parallel = daemon.loaded()[0]["info"]["parallel"]
    tokens = sum(record["usage"]["completion"] for record in records)
    print(f"{used} steps for {tokens} tokens, {parallel} at once")
    # A full batch makes `parallel` tokens a step; prompts take steps of their own beside them.
    assert used < 2 * tokens / parallel, (used, tokens, parallel)


def test_map_gives_the_model_the_prompt_that_run_would(daemon: Daemon) -> None:
    alone = daemon.run("run", DEFAULT_MODEL, "Say hi to Ann.", "--json", *OPTIONS)
    ended = daemon.run("map", DEFAULT_MODEL, "Say hi to {who}.", *OPTIONS, stdin=b'{"who": "Ann"}\n')
    record = json.loads(ended.stdout)
    # The words may differ: the same numbers come of other batches, with other roundings.
    assert record["usage"]["prompt"] == json.loads(alone.stdout)["usage"]["prompt"]
    assert record["output"]
