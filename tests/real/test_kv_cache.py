"""The prompt cache outlives the daemon."""

from __future__ import annotations

import secrets
import shutil
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually, has_ended

RULES = " ".join(f"Rule {n}: answer question {n} in {n % 7 + 1} words." for n in range(40))


def ask(daemon: Daemon, prompt: str) -> tuple[str, int, int]:
    """The greedy text, the prompt's tokens, and how many of them were cached."""
    said = daemon.http.post(
        "/v1/completions", json={"model": DEFAULT_MODEL, "prompt": prompt, "temperature": 0, "max_tokens": 8}
    ).json()
    usage = said["usage"]
    return said["choices"][0]["text"], usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]


@pytest.mark.parametrize("end", ["in order", "kill"])
def test_prompt_after_a_restart_of_the_daemon_comes_from_disk(home: Path, end: str) -> None:
    folder = home / "cache" / "kv"
    shutil.rmtree(folder, ignore_errors=True)
    prompt = f"{secrets.token_hex(8)} {RULES}"
    daemon = Daemon(home, LLMRUN_CTX="2048", LLMRUN_CACHE_DISK="500M")
    first, count, cached = ask(daemon, prompt)
    assert cached < 10
    if end == "kill":
        assert eventually(lambda: any(folder.glob("*/*.kv")), 20)
        runner = daemon.runner()
        daemon.process.kill()
        daemon.process.communicate()
        daemon.http.close()
        assert eventually(lambda: has_ended(runner), 20)
    else:
        daemon.close()
    again = Daemon(home, LLMRUN_CTX="2048", LLMRUN_CACHE_DISK="500M")
    try:
        assert ask(again, prompt) == (first, count, count - 1)
    finally:
        again.close()
