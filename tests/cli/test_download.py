from __future__ import annotations

import io

from llmrun.cli import download
from llmrun.cli.download import Lines
from llmrun.cli.output import Output
from llmrun.store import PullProgress
from tests.cli.test_output import Terminal


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


def test_quiet_reports_nothing() -> None:
    out = Output(io.StringIO(), Terminal(), quiet=True)
    with download.reporter(out) as report:
        assert report is None
