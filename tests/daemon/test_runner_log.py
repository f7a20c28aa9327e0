from __future__ import annotations

import logging

import pytest

from llmrun.daemon.runner_log import KEPT_LINES, LONGEST_LINE, RunnerLog


def test_feed_own_records_keep_their_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "llmrun")
    log = RunnerLog("qwen2.5:7b")
    log.feed(b"2026-01-01 12:00:00 W llmrun.engine: slow")
    log.feed(b" step\nGGML_ASSERT failed\n")
    assert caplog.record_tuples == [
        ("llmrun.runner.qwen2.5:7b", logging.WARNING, "llmrun.engine: slow step"),
        ("llmrun.runner.qwen2.5:7b", logging.INFO, "GGML_ASSERT failed"),
    ]


def test_tail_keeps_the_last_lines_and_one_without_an_end() -> None:
    log = RunnerLog("a")
    log.feed("".join(f"line {n}\n" for n in range(50)).encode() + b"no end")
    log.close()
    assert log.tail == [f"line {n}" for n in range(31, 50)] + ["no end"]
    assert len(log.tail) == KEPT_LINES


def test_feed_endless_line_is_cut() -> None:
    log = RunnerLog("a")
    for _ in range(100):
        log.feed(b"x" * 1000)
    assert len(log.tail) == 20
    assert all(len(line) <= LONGEST_LINE for line in log.tail)


def test_feed_bytes_that_are_no_text_are_replaced() -> None:
    log = RunnerLog("a")
    log.feed(b"bad \xff byte\n\n   \n")
    assert log.tail == ["bad \ufffd byte"]
