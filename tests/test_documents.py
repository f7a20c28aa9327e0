"""docs/reliability.md and docs/compatibility.md name tests: each exists, and no reported case is missing."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
REPORTED = {
    1,
    3,
    5,
    6,
    8,
    10,
    11,
    13,
    16,
    18,
    20,
    22,
    24,
    25,
    28,
    30,
    32,
    34,
    37,
    40,
    44,
    45,
    48,
    50,
    52,
    55,
    57,
}
REPORTED |= {58, 61, 62, 64, 66}
"""The numbers of the reports of what programs of this kind got wrong in their API."""


def text(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


@pytest.mark.parametrize("name", ["reliability.md", "compatibility.md"])
def test_every_test_that_the_document_names_exists(name: str) -> None:
    named = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", text(name))
    assert len(named) > 20
    missing = [
        f"{path}::{test}"
        for path, test in named
        if not re.search(rf"^(async )?def {test}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    ]
    assert not missing


@pytest.mark.parametrize("name", ["reliability.md", "compatibility.md"])
def test_every_row_of_the_document_names_a_test(name: str) -> None:
    rows = [line for line in text(name).splitlines() if line.startswith("| ")]
    assert [row for row in rows if "::" not in row and "| test |" not in row and "---" not in row] == []


def test_every_reported_case_has_a_row() -> None:
    numbers = re.findall(
        r"\bB(\d+)\b", "".join(re.findall(r"^\|.*$", text("compatibility.md"), re.MULTILINE))
    )
    assert REPORTED - set(map(int, numbers)) == set()
