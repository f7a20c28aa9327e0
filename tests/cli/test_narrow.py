"""What is shown on a terminal of 40 columns, which breaks what is longer wherever it ends."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator

import pytest

from llmrun.types import Event, Finished, GenerateRequest, Started, Stopped, Text, Usage
from tests.api.scripted import MODEL, TIMINGS
from tests.cli.conftest import Shell
from tests.support.terminal import CONTROL, Terminal

COLUMNS = 40
ROOM = 20  # a word that is longer, a path say, may have none beside the name in front of it


def lines(shell: Shell, *args: str) -> list[str]:
    """All that the command writes before it ends, as it would stand on a terminal as wide as it likes."""
    env = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    terminal = Terminal({**env, **shell.env, "HF_HUB_OFFLINE": "1"}, *args, columns=COLUMNS)
    with pytest.raises(AssertionError, match="ended before"):
        terminal.expect("\0")
    terminal.close()
    text = CONTROL.sub("", terminal.raw).replace("\r\n", "\n")
    return [line.rpartition("\r")[2] for line in text.split("\n")]


@pytest.mark.parametrize(
    "words",
    [
        "--help", "bench --help", "run --help", "list", "show tiny:1m", "ps", "fit tiny:1m", "keys list",
        "import --dry-run", "prune --dry-run", "verify", "uninstall", "config get", "doctor",
        "run nosuch:1 hi", "run tiny:1m --temperature hot hi", "nosuch",
        "explain tiny:1m hi --max-tokens 2 --local",
    ],
)  # fmt: skip
def test_narrow_terminal_breaks_no_line_within_a_word(served: Shell, words: str) -> None:
    shown = lines(served, *words.split())
    assert len(shown) > 1
    for line in shown:
        assert len(line) <= COLUMNS or len(line.split()[-1]) > ROOM, shown


def test_narrow_terminal_shows_an_answer_broken_between_words(served: Shell) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 0)
        yield Text(0, "A sentence that is much longer than a nar")
        yield Text(0, "row terminal.\n```\n")
        yield Text(0, f"{'code ' * 12}\n```\nThe end of the whole answer, also long.")
        yield Stopped(0, "stop")
        yield Finished(Usage(prompt=1, completion=5), TIMINGS)

    served.daemon.script = script
    shown = lines(served, "run", MODEL, "hi")
    at = shown.index("A sentence that is much longer than a")
    assert [line.rstrip() for line in shown[at:]] == [
        "A sentence that is much longer than a", "narrow terminal.", "```", ("code " * 12).rstrip(), "```",
        "The end of the whole answer, also long.", "",
    ]  # fmt: skip
