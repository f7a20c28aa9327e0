"""Transcripts of the command line: commands as they are typed and all that they print, and a chat as it
looks on the screen in the end."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.conftest import HOME
from tests.real.daemons import CLEAN, free_port
from tests.support.terminal import Terminal

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "screens"
COLUMNS = 90
COMMANDS = (
    "llmrun list",
    'llmrun run smollm2:135m --temperature 0 --max-tokens 30 --verbose "Why is the sky blue?"',
    "llmrun run smollm2:135m --temperature 0 --format json --max-tokens 40 'Describe a cat as JSON.'",
    "llmrun fit smollm2:135m",
    'llmrun explain smollm2:135m --max-tokens 3 --candidates 4 "What is the capital of France?"',
    "llmrun ps",
    "llmrun run smollm2:136m hi",
    "llmrun doctor",
    "llmrun stop",
)
CHAT = (  # a line, and what is shown in the end of what it brings
    ("/set temperature 0", r"temperature +0\.0"),
    ("/set max_tokens 60", "max_tokens +60"),
    ("Name two colours, as a list.", "[\u2800-\u28ff] (waiting|reading)[^\r]*\r[^\u2800-\u28ff]*"),
    ("/context", "of 4,096 tokens"),
    ("/stats", r"chat +\d+ answers?, [\d,]+ tokens"),
)


def main() -> None:
    """Write docs/screens/terminal.md."""
    Store(Paths.find({"LLMRUN_HOME": str(HOME)})).pull(DEFAULT_MODEL)
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as home:
        # Linked rather than used in place, so that its source is the one it was pulled from.
        shutil.copytree(HOME / "models", Path(home) / "models", copy_function=os.link)
        env = {**CLEAN, "LLMRUN_HOME": home, "LLMRUN_HOST": f"127.0.0.1:{free_port()}", "LLMRUN_CTX": "4096"}
        try:
            parts = [_typed(command, env) for command in COMMANDS]
            parts.insert(-1, _chat(env))
        finally:
            _run("llmrun stop --daemon", env)
        text = "\n\n".join(parts).replace(home, "~/llmrun")
    head = (
        "# In the terminal\n\nMade by `scripts/screens` from the real program, with its smallest model.\n\n"
    )
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "terminal.md").write_text(f"{head}{text}\n", "utf-8")
    print("docs/screens/terminal.md")


def _typed(command: str, env: dict[str, str]) -> str:
    """The command and what it printed, as a block."""
    return f"```console\n$ {command}\n{_run(command, env).strip()}\n```"


def _run(command: str, env: dict[str, str]) -> str:
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        words, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, timeout=120, check=False,
    )  # fmt: skip
    return done.stdout.decode()


def _chat(env: dict[str, str]) -> str:
    chat = Terminal({**env, "PATH": os.environ["PATH"]}, "chat", columns=COLUMNS)
    try:
        chat.expect(">>>")
        for line, shown in CHAT:
            chat.type(f"{line}\r")
            chat.expect(f"{shown}.*>>>")
        chat.type("/bye\r")
        chat.process.wait(30)
        screen = "\n".join(chat.screen())
    finally:
        chat.close()
    return f"```console\n$ llmrun chat\n{screen}\n```"
