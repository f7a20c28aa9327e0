from __future__ import annotations

import logging

import pytest

from llmrun import log
from llmrun.daemon.runner_log import KEPT_LINES, LONGEST_KEPT, LONGEST_LINE, RunnerLog


def test_feed_own_records_keep_their_level(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "llmrun")
    runner_log = RunnerLog("qwen2.5:7b")
    runner_log.feed(b'{"level": "warning", "logger": "llmrun.engine", "message": "slow')
    runner_log.feed(b' step"}\nGGML_ASSERT failed\n')
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
    caplog.set_level(logging.DEBUG, "llmrun")
    monkeypatch.setattr(log, "ROOT", logging.Logger("spare"))
    log.setup(fmt="json")
    (handler,) = log.ROOT.handlers
    written = logging.LogRecord("llmrun.engine", level, "", 0, "step %d\n", (5,), None)
    vars(written).update(request="req_1", fields={"prompt": 7})
    handler.filter(written)
    RunnerLog("a").feed(handler.format(written).encode() + b"\n")
    assert caplog.record_tuples == [("llmrun.runner.a", level, "llmrun.engine: step 5\\n")]
    (read,) = map(vars, caplog.records)
    assert (read["request"], read["fields"]) == ("req_1", {"prompt": 7})


def test_feed_traceback_stays_with_its_record_and_is_in_the_tail(caplog: pytest.LogCaptureFixture) -> None:
    runner_log = RunnerLog("a")
    error = "Traceback\\n  File x\\nValueError: no"
    line = f'{{"level": "error", "logger": "llmrun", "message": "failed", "error": "{error}"}}\n'
    runner_log.feed(line.encode())
    assert [record.exc_text for record in caplog.records] == ["Traceback\n  File x\nValueError: no"]
    assert runner_log.tail == ["llmrun: failed", "Traceback", "  File x", "ValueError: no"]


@pytest.mark.parametrize(
    "line",
    [
        '{"level": "loud", "logger": "x", "message": "y"}', '{"level": [], "logger": "x", "message": "y"}',
        "[1, 2]", "{}", '"text"', "null", "{" * 100_000, '{"level": "info"}', '{"a": ' * 5000,
    ],
)  # fmt: skip
def test_feed_line_that_only_looks_like_a_record_is_text(line: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "llmrun")
    RunnerLog("a").feed(line.encode() + b"\n")
    assert caplog.record_tuples == [("llmrun.runner.a", logging.INFO, line[:LONGEST_KEPT])]


def test_tail_keeps_the_last_lines_and_one_without_an_end() -> None:
    runner_log = RunnerLog("a")
    runner_log.feed("".join(f"line {n}\n" for n in range(50)).encode() + b"no end")
    runner_log.close()
    assert runner_log.tail == [f"line {n}" for n in range(31, 50)] + ["no end"]
    assert len(runner_log.tail) == KEPT_LINES


def test_feed_endless_line_is_cut() -> None:
    runner_log = RunnerLog("a")
    for _ in range(100):
        runner_log.feed(b"x" * (LONGEST_LINE // 4))
    assert len(runner_log.tail) == 20
    assert all(len(line) <= LONGEST_KEPT for line in runner_log.tail)


def test_feed_bytes_that_are_no_text_are_replaced() -> None:
    runner_log = RunnerLog("a")
    runner_log.feed(b"bad \xff byte\n\n   \n")
    assert runner_log.tail == ["bad \ufffd byte"]


@pytest.mark.parametrize(
    ("last", "tells"),
    [
        (b"MemoryError", True),
        (b"terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc", True),
        (b"OpenBLAS error: Memory allocation still failed after 10 retries, giving up.", True),
        (b"OSError: [Errno 12] Cannot allocate memory", True),
        (b"libgomp: Thread creation failed: Resource temporarily unavailable", True),
        (b"GGML_ASSERT(ctx) failed", False),
        (b"", False),
        (b"MemoryError\none\ntwo\nthree", False),
    ],
)
def test_tells_of_memory_looks_at_the_last_words_alone(last: bytes, tells: bool) -> None:
    runner_log = RunnerLog("a")
    runner_log.feed(b"loading\n" + last)
    runner_log.close()
    assert runner_log.tells_of_memory is tells
