"""What a benchmark leaves: rows, and a file that the documentation is made from."""

from __future__ import annotations

from pathlib import Path

import pytest
import results
from comparing import Comparison
from suites import SUITES


def row(
    ours: list[float], theirs: list[float], *, ratio: float | None = None, more: float | None = None
) -> str:
    return results.row(Comparison("single", "seconds", "peer", "lower", ours, theirs, ratio, more))


@pytest.mark.parametrize(
    ("line", "end"),
    [
        (row([1.0], [2.0], ratio=1.5), "| 2.00 | 1.50 |\n"),
        (row([1.0], [1.0], ratio=1.5), "| 1.00 | 1.50, missed |\n"),
        (row([1.4], [1.0], more=0.5), "| 0.71 | at most 0.5 more |\n"),
        (row([1.6], [1.0], more=0.5), "| 0.62 | at most 0.5 more, missed |\n"),
        (row([1.0], [2.0]), "| 2.00 |  |\n"),
    ],
)
def test_row_says_what_was_wished_for_and_whether_it_was_missed(line: str, end: str) -> None:
    assert line.endswith(end)


def test_kept_figures_give_the_rows_that_were_printed(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    found = [Comparison("single", "tokens/s", "peer", "higher", [10.0, 12.0], [5.0, 6.0], ratio=1.5)]
    about = results.circumstances("A model", 4096, 2)
    results.keep(file, "small", about, found)
    results.keep(file, "copying", about, [])
    text = results.markdown(file, "small")
    assert "scripts/bench/servers.py --suite small" in text
    assert text.endswith(f"{results.HEAD}\n{results.row(found[0])}")
    assert "Context 4,096, 2 threads" in text


def test_keep_a_suite_again_replaces_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "kept.json"
    about = results.circumstances("A model", 4096, 2)
    for value in (1.0, 2.0):
        results.keep(file, "small", about, [Comparison("w", "f", "p", "higher", [value], [1.0])])
    assert results.markdown(file, "small").count("| `w` |") == 1


def test_suites_cases_name_workloads_and_figures_once() -> None:
    for suite in SUITES.values():
        keys = [(case.workload, case.peer) for case in suite.cases]
        assert len(keys) == len(set(keys))
