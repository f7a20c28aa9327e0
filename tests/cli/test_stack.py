"""The command line over everything below it: a real daemon, a real runner, a tiny model of random weights."""

from __future__ import annotations

import json
from collections.abc import Iterator

import psutil
import pytest

from llmrun.config import Paths
from llmrun.daemon.lock import find_daemon
from tests.api.scripted import MODEL
from tests.cli.conftest import Done, Shell
from tests.real.daemons import end_inherited, eventually, has_ended

GREEDY = ("--temperature", "0", "--max-tokens", "8")


@pytest.fixture
def stack(stocked: Shell, paths: Paths) -> Iterator[Shell]:
    """A shell with the model and no daemon yet; one that is there at the end is ended."""
    yield stocked
    if daemon := find_daemon(paths):
        end_inherited(daemon.pid)


def answer(done: Done) -> str:
    assert done.code == 0, done.err
    return done.out


def test_run_starts_the_daemon_answers_and_ps_and_stop_agree(stack: Shell) -> None:
    first = stack.finish("run", MODEL, "hi", *GREEDY)
    assert "starting the daemon" in first.err
    again = stack.finish("run", MODEL, "hi", *GREEDY)
    assert again.err == ""
    assert answer(again) == answer(first)
    (loaded,) = json.loads(answer(stack.finish("ps", "--json")))
    assert (loaded["name"], loaded["state"], loaded["in_flight"]) == (MODEL, "ready", 0)
    assert stack.finish("stop", MODEL).err == f"{MODEL} is unloaded\n"
    assert answer(stack.finish("ps", "--json")) == "[]\n"


def test_prompt_past_the_context_says_both_numbers(stack: Shell) -> None:
    done = stack.finish("run", MODEL, "word " * 600)
    assert (done.code, done.out) == (1, "")
    error = done.err.splitlines()[-1]
    assert "512" in error
    assert any(int(number) > 600 for number in error.split() if number.isdigit())


def test_local_answers_the_same_without_a_daemon(stack: Shell, paths: Paths) -> None:
    shared = answer(stack.finish("run", MODEL, "hi", *GREEDY))
    stack.finish("stop", "--daemon")
    alone = stack.finish("run", MODEL, "hi", *GREEDY, "--local")
    assert alone.err == ""
    assert answer(alone) == shared
    assert find_daemon(paths) is None


def test_killed_daemon_leaves_no_orphan_and_the_next_run_works(stack: Shell, paths: Paths) -> None:
    before = answer(stack.finish("run", MODEL, "hi", *GREEDY))
    (loaded,) = json.loads(answer(stack.finish("ps", "--json")))
    daemon = find_daemon(paths)
    assert daemon is not None
    runner = psutil.Process(loaded["pid"])
    psutil.Process(daemon.pid).kill()
    assert eventually(lambda: has_ended(runner), 5)
    assert answer(stack.finish("run", MODEL, "hi", *GREEDY)) == before
