"""Completion in the shell: by the words that a shell tells of, and typed into a real bash."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.cli.completion import behind_the_colon, joined
from llmrun.config import Paths
from llmrun.store import Store
from tests.cli.conftest import Shell
from tests.support.terminal import Terminal


@pytest.mark.parametrize(
    ("words", "at", "whole", "place"),
    [
        (["x", "run", "sm"], 2, ["x", "run", "sm"], 2),
        (["x", "run", ""], 2, ["x", "run", ""], 2),
        (["x", "run"], 2, ["x", "run"], 2),
        (["x", "run", "smollm2", ":"], 3, ["x", "run", "smollm2:"], 2),
        (["x", "run", "smollm2", ":", "13"], 4, ["x", "run", "smollm2:13"], 2),
        (["x", "run", "smollm2", ":", "135m", "--f"], 5, ["x", "run", "smollm2:135m", "--f"], 3),
        (["x", "run", "pypi", ":", "//a"], 4, ["x", "run", "pypi://a"], 2),
        (["x", "run", "smollm2:135m", "--f"], 3, ["x", "run", "smollm2:135m", "--f"], 3),
    ],
)
def test_joined_words_are_those_that_a_person_sees(
    words: list[str], at: int, whole: list[str], place: int
) -> None:
    assert joined(words, at) == (whole, place)


def test_offer_leaves_out_what_bash_has_already() -> None:
    assert behind_the_colon("smollm2:1", ["smollm2:135m", "smollm2:1.7b"]) == ["135m", "1.7b"]
    assert behind_the_colon("smo", ["smollm2:135m"]) == ["smollm2:135m"]


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("llmrun ru", "run"),
        ("llmrun show ti", "tiny:1m"),
        ("llmrun run m -o top_", "top_k="),
        ("llmrun run m --format j", "json"),
        ("llmrun config set keep", "keep_alive"),
        ("llmrun keys revoke la", "laptop"),
        ("llmrun chat --session mi", "mine"),
        ("llmrun quantize m Q4_K_", "Q4_K_M"),
        ("llmrun pull smollm2:135", "135m"),
        ("llmrun serve --log-format j", "json"),
    ],
)
def test_completion_knows_the_values(stocked: Shell, words: str, offered: str) -> None:
    assert stocked.run("keys", "create", "laptop").code == 0
    chats = Path(stocked.env["LLMRUN_HOME"]) / "state" / "chats"
    chats.mkdir(parents=True, exist_ok=True)
    (chats / "mine.json").write_text('{"version": 1, "model": "tiny:1m", "turns": []}')
    stocked.env |= {
        "_LLMRUN_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" ")),
    }  # fmt: skip
    done = stocked.finish()
    assert offered in done.out.split(), done


def test_completion_behind_a_command_that_is_none_is_silent(stocked: Shell) -> None:
    stocked.env |= {"_LLMRUN_COMPLETE": "complete_fish", "_TYPER_COMPLETE_ARGS": "llmrun nosuch x"}
    stocked.env["_TYPER_COMPLETE_FISH_ACTION"] = "is-args"
    done = stocked.finish()
    assert (done.code, done.out, done.err) == (1, "", "")


def test_completion_in_zsh_keeps_apostrophes(stocked: Shell) -> None:
    stocked.env |= {"_LLMRUN_COMPLETE": "complete_zsh", "_TYPER_COMPLETE_ARGS": "llmrun benc"}
    assert r"Measure a model'\''s speed" in stocked.finish().out


@pytest.fixture
def talkative(stocked: Shell, paths: Paths, tmp_path: Path) -> dict[str, str]:
    """The environment of a shell: a home with two models, and a llmrun that says its arguments."""
    Store(paths).copy("tiny:1m", "tiny:2m")
    (program := tmp_path / "llmrun").write_text(
        f'#!/bin/sh\n[ "$_LLMRUN_COMPLETE" ] && exec {sys.executable} -m llmrun "$@"\necho "got <$*>"\n'
    )
    program.chmod(0o755)
    folders = {"HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path / ".config")}
    return {**os.environ, **stocked.env, **folders, "PATH": f"{tmp_path}:{os.environ['PATH']}", "PS1": "$ "}


@pytest.fixture
def bash(talkative: dict[str, str]) -> Iterator[Terminal]:
    """An interactive bash with llmrun's completion."""
    terminal = Terminal(talkative, "--norc", "--noprofile", "-i", program="/bin/bash")
    terminal.type('eval "$(_LLMRUN_COMPLETE=source_bash llmrun)"; echo ready\r')
    terminal.expect("ready\r\n.*[$] ")
    yield terminal
    terminal.close()


def test_tab_in_bash_completes_a_name_also_behind_its_colon(bash: Terminal) -> None:
    for keys, got in (
        ("llmrun show ti\t1\t\r", "show tiny:1m"),
        ("llmrun show tiny:2\t\r", "show tiny:2m"),
        ("llmrun rm tiny:1m tiny:2\t\r", "rm tiny:1m tiny:2m"),
        ("llmrun run tiny:1m --form\tj\t\r", "run tiny:1m --format json"),
        ("llmrun help keys rev\t\r", "help keys revoke"),
    ):
        bash.type(keys)
        bash.expect(f"got <{got} ?>")


@pytest.mark.parametrize("name", ["zsh", "fish"])
def test_tab_after_the_install_completes_command_option_and_model(
    name: str, talkative: dict[str, str], tmp_path: Path
) -> None:
    """The first Tab of a new shell too. `--install-completion` is for the shell that started it."""
    if not (program := shutil.which(name)):
        pytest.skip(f"{name} is not installed")
    install = f"{sys.executable} -m llmrun --install-completion; true"
    subprocess.run([program, "-c", install], env=talkative, check=True, capture_output=True, timeout=60)
    with (tmp_path / ".zshrc").open("a") as settings:
        settings.write("PS1='$ '\n")
    terminal = Terminal({**talkative, "TERM": "xterm"}, "-i", program=program)
    try:
        terminal.expect("[$#>] ")
        for keys, got in (
            ("llmrun ru\t", "run"),
            ("llmrun show tiny:2\t", "show tiny:2m"),
            ("llmrun run tiny:1m --form\tj\t", "run tiny:1m --format json"),
            ("llmrun help keys rev\t", "help keys revoke"),
        ):
            terminal.type(keys + "\r")
            terminal.expect(f"got <{got}>")
    finally:
        terminal.close()
