from __future__ import annotations

import io

import pytest

from llmrun.cli import download
from llmrun.cli.download import Lines
from llmrun.cli.output import Output
from llmrun.store import PullProgress
from tests.cli.test_output import Terminal
from tests.support.terminal import CONTROL


def test_lines_tell_of_notes_and_tenths_only() -> None:
    said: list[str] = []
    lines = Lines(said.append)
    lines.report(PullProgress("note", "picked Q4_0", 0, None))
    for completed in range(0, 1001, 7):
        lines.report(PullProgress("download", "x.gguf", completed, 1000))
    lines.report(PullProgress("verify", "x.gguf", 1000, 1000))
    assert said[0] == "picked Q4_0"
    assert len(said) == 12
    assert said[1] == "downloading x.gguf: 0 bytes of 1.0 kB (0 %)"
    assert said[-1] == "checking x.gguf: 1.0 kB of 1.0 kB (100 %)"


def test_lines_without_a_known_size_do_not_flood() -> None:
    said: list[str] = []
    lines = Lines(said.append)
    for completed in range(100):
        lines.report(PullProgress("download", "x.gguf", completed, None))
    assert said == ["downloading x.gguf: 0 bytes"]


def test_bar_on_a_terminal_shows_name_bytes_and_notes() -> None:
    err = Terminal()
    out = Output(io.StringIO(), err, env={"TERM": "xterm"})
    with download.reporter(out) as report:
        assert report is not None
        report(PullProgress("note", "picked [Q4_0]", 0, None))
        report(PullProgress("download", "x.gguf", 500, 1000))
    assert "picked [Q4_0]" in err.getvalue()
    assert "downloading x.gguf" in err.getvalue()


@pytest.mark.parametrize(
    ("columns", "line"),
    [
        (40, "SmolLM2-135M-In… 98.4/196.7 MB -:--:--"),
        (60, "checking SmolLM… "),
        (100, "checking SmolLM2-135M-Instruct.Q4_1.gguf "),
    ],
)
def test_bar_on_a_narrow_terminal_cuts_the_name_and_no_figure(
    columns: int, line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    err = Terminal()
    with download.reporter(Output(io.StringIO(), err, env={"TERM": "xterm"})) as report:
        assert report is not None
        report(PullProgress("verify", "SmolLM2-135M-Instruct.Q4_1.gguf", 98_400_000, 196_700_000))
    shown = CONTROL.sub("", err.getvalue())
    assert line in shown
    assert "98.4/196.7 MB" in shown


def test_quiet_reports_nothing() -> None:
    out = Output(io.StringIO(), Terminal(), quiet=True)
    with download.reporter(out) as report:
        assert report is None
