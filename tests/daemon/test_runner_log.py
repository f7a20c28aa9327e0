from __future__ import annotations

import logging

import pytest

from llmrun import log
from llmrun.daemon.runner_log import KEPT_LINES, LONGEST_LINE, RunnerLog


def test_feed_own_records_keep_their_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "llmrun")
    runner_log = RunnerLog("qwen2.5:7b")
    runner_log.feed(b"2026-01-01 12:00:00 W llmrun.engine: slow")
    runner_log.feed(b" step\nGGML_ASSERT failed\n")
    assert caplog.record_tuples == [
        ("llmrun.runner.qwen2.5:7b", logging.WARNING, "llmrun.engine: slow step"),
        ("llmrun.runner.qwen2.5:7b", logging.INFO, "GGML_ASSERT failed"),
    ]


@pytest.mark.parametrize(
    "level", [logging.DEBUG, logging.INFO, logging.WARNING, logging.ERROR, logging.CRITICAL]
)
def test_feed_what_our_log_writes_is_the_record_again(
    level: int, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The text form is written in `llmrun.log` and read here."""
    caplog.set_level(logging.DEBUG, "llmrun")
    monkeypatch.setattr(log, "ROOT", logging.Logger("spare"))
    log.setup()
    written = logging.LogRecord("llmrun.engine", level, "", 0, "step %d", (5,), None)
    RunnerLog("a").feed(log.ROOT.handlers[0].format(written).encode() + b"\n")
    assert caplog.record_tuples == [("llmrun.runner.a", level, "llmrun.engine: step 5")]


def test_tail_keeps_the_last_lines_and_one_without_an_end() -> None:
    runner_log = RunnerLog("a")
    runner_log.feed("".join(f"line {n}\n" for n in range(50)).encode() + b"no end")
    runner_log.close()
    assert runner_log.tail == [f"line {n}" for n in range(31, 50)] + ["no end"]
    assert len(runner_log.tail) == KEPT_LINES


def test_feed_endless_line_is_cut() -> None:
    runner_log = RunnerLog("a")
    for _ in range(100):
        runner_log.feed(b"x" * 1000)
    assert len(runner_log.tail) == 20
    assert all(len(line) <= LONGEST_LINE for line in runner_log.tail)


def test_feed_bytes_that_are_no_text_are_replaced() -> None:
    runner_log = RunnerLog("a")
    runner_log.feed(b"bad \xff byte\n\n   \n")
    assert runner_log.tail == ["bad \ufffd byte"]
