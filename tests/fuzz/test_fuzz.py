"""Some hundred damaged inputs for whatever reads foreign bytes; `python -m tests.fuzz` runs for longer."""

from __future__ import annotations

import pytest

from llmrun.errors import INVALID_REQUEST, LlmrunError
from tests.fuzz.fuzzing import Fuzzer, Target
from tests.fuzz.targets import targets

TARGETS = targets()


@pytest.mark.parametrize("name", TARGETS)
def test_damaged_input_is_read_or_refused_in_words_and_in_time(name: str) -> None:
    fuzzer = Fuzzer(TARGETS[name], seed=1)
    assert fuzzer.falls(runs=500) == []


def _fragile(data: bytes) -> None:
    if data[:1] != b"a":
        raise LlmrunError(INVALID_REQUEST, "no")
    if data[1:2] == b"b":
        raise ZeroDivisionError("found")


def test_fuzzer_finds_what_falls() -> None:
    (fall,) = Fuzzer(Target(_fragile, [b"ax"], [b"b"]), seed=1).falls(runs=2000)
    assert fall.data.startswith(b"ab")
    assert fall.why == "ZeroDivisionError: found"


def test_fuzzer_keeps_what_reaches_new_lines() -> None:
    fuzzer = Fuzzer(TARGETS["reference"], seed=1)
    before = len(fuzzer.corpus)
    fuzzer.falls(runs=300)
    assert len(fuzzer.corpus) > before
