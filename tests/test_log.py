from __future__ import annotations

import json
import logging
from collections.abc import Iterator

import pytest

from llmrun import log


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers, level, propagate = log.ROOT.handlers[:], log.ROOT.level, log.ROOT.propagate
    yield
    log.ROOT.handlers[:], log.ROOT.propagate = handlers, propagate
    log.ROOT.setLevel(level)


def test_setup_text_writes_to_stderr_only(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup()
    logging.getLogger("llmrun.part").info("said %d", 5)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("I llmrun.part: said 5\n")


def test_setup_json_is_one_object_a_line_with_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup(fmt="json")
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        logging.getLogger("llmrun.part").exception("failed")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["level"], record["logger"], record["message"]) == ("error", "llmrun.part", "failed")
    assert "ValueError: broken" in record["error"]


def test_setup_twice_writes_each_record_once(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup()
    log.setup()
    logging.getLogger("llmrun.part").warning("once")
    assert len(capsys.readouterr().err.splitlines()) == 1
