"""The two ways in from Python: a model in this process, and the daemon."""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import llmrun
from llmrun.config import DEFAULT_MODEL
from llmrun.errors import LlmrunError
from tests.real.daemons import Daemon

pytestmark = pytest.mark.real


def test_load_chats_whole_streamed_and_from_threads(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMRUN_HOME", str(home))
    with llmrun.load(DEFAULT_MODEL, ctx=512) as model:
        assert model.ctx == 512
        whole = model.chat("Say hi", temperature=0, max_tokens=8)
        assert "".join(model.chat("Say hi", stream=True, temperature=0, max_tokens=8)) == whole
        assert model.complete("1, 2, 3,", temperature=0, max_tokens=2).startswith(" 4")
        with ThreadPoolExecutor(4) as pool:
            lengths = list(pool.map(lambda i: len(model.complete(f"{i},", max_tokens=8)), range(4)))
        assert all(lengths)
        first = next(model.chat("Tell me a long story", stream=True))
        assert first
        with pytest.raises(LlmrunError, match="the context holds 512"):
            model.complete("word " * 600)
    with pytest.raises(LlmrunError, match="closed"):
        model.chat("hi")
    model.close()


def test_client_talks_to_the_daemon(daemon: Daemon) -> None:
    program = (
        "import llmrun\n"
        "with llmrun.Client() as client:\n"
        f"    whole = client.chat({DEFAULT_MODEL!r}, 'Say hi', temperature=0, max_tokens=8)\n"
        f"    pieces = client.chat({DEFAULT_MODEL!r}, 'Say hi', stream=True, temperature=0, max_tokens=8)\n"
        "    assert whole and ''.join(pieces) == whole\n"
        f"    print(client.complete({DEFAULT_MODEL!r}, '1, 2, 3,', temperature=0, max_tokens=2))\n"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program], env=daemon.env, capture_output=True, text=True, timeout=60
    )
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.startswith(" 4")
