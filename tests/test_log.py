from __future__ import annotations

import asyncio
import contextvars
import gc
import json
import logging
import re
import socket
from collections.abc import Iterator

import pytest

from llmrun import log
from llmrun.config import LOG_FORMATS


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    handlers, level, propagate = log.ROOT.handlers[:], log.ROOT.level, log.ROOT.propagate
    yield
    log.ROOT.handlers[:], log.ROOT.propagate = handlers, propagate
    log.ROOT.setLevel(level)
    adopted = logging.getLogger("asyncio")
    adopted.handlers[:], adopted.filters[:] = [], []


def test_setup_text_writes_to_stderr_only(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup()
    logging.getLogger("llmrun.part").info("said %d", 5)
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.endswith("I llmrun.part: said 5\n")


def test_setup_json_is_one_object_a_line_with_the_error(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup("DEBUG", fmt="json")
    try:
        raise ValueError("broken\nin two")
    except ValueError:
        logging.getLogger("llmrun.part").exception("failed")
    (line,) = capsys.readouterr().err.splitlines()
    record = json.loads(line)
    assert (record["level"], record["logger"], record["message"]) == ("error", "llmrun.part", "failed")
    assert "ValueError: broken" in record["error"]


WORDS = "a prompt\n2026-01-01 00:00:00 E llmrun: forged \x1b[31m"


def failed(level: str, fmt: str, error: Exception) -> None:
    log.setup(level, fmt)
    try:
        try:
            raise error
        except Exception as first:
            raise ValueError(WORDS) from first
    except ValueError:
        logging.getLogger("llmrun.part").exception("failed")


@pytest.mark.parametrize("fmt", LOG_FORMATS)
def test_error_that_nobody_foresaw_is_told_without_its_words(
    capsys: pytest.CaptureFixture[str], fmt: str
) -> None:
    failed("INFO", fmt, KeyError(WORDS))
    text = capsys.readouterr().err
    assert "prompt" not in text
    assert "forged" not in text
    assert "in failed" in text
    assert "KeyError" in text
    assert text.rstrip().rstrip('"}').endswith("ValueError")


def test_error_of_the_system_is_told_with_its_words(capsys: pytest.CaptureFixture[str]) -> None:
    failed("INFO", "text", FileNotFoundError(2, "No such file", "/x/y"))
    assert "FileNotFoundError: [Errno 2] No such file: '/x/y'" in capsys.readouterr().err


def test_words_of_an_error_write_no_record_of_their_own(capsys: pytest.CaptureFixture[str]) -> None:
    failed("DEBUG", "text", KeyError())
    first, *others = capsys.readouterr().err.splitlines()
    assert first.endswith("E llmrun.part: failed")
    assert all(line.startswith("  ") for line in others)
    assert others[-1] == r"  2026-01-01 00:00:00 E llmrun: forged \x1b[31m"


def test_setup_twice_writes_each_record_once(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup()
    log.setup()
    logging.getLogger("llmrun.part").warning("once")
    assert len(capsys.readouterr().err.splitlines()) == 1


@pytest.mark.parametrize("fmt", LOG_FORMATS)
def test_note_request_is_on_every_record_of_its_task_and_no_other(
    capsys: pytest.CaptureFixture[str], fmt: str
) -> None:
    log.setup(fmt=fmt)
    logger = logging.getLogger("llmrun.part")

    def work() -> None:
        log.note_request("req_7")
        logger.info("done", extra=log.fields(tokens=5))

    contextvars.copy_context().run(work)
    logger.info("idle")
    done, idle = capsys.readouterr().err.splitlines()
    if fmt == "json":
        assert (json.loads(done)["request"], json.loads(done)["tokens"]) == ("req_7", 5)
        assert "request" not in json.loads(idle)
    else:
        assert done.endswith(" I llmrun.part: [req_7] done")
        assert idle.endswith(" I llmrun.part: idle")


@pytest.mark.parametrize("fmt", LOG_FORMATS)
def test_message_with_line_ends_and_escapes_is_one_line(capsys: pytest.CaptureFixture[str], fmt: str) -> None:
    """Names come from clients: none of them may write a record of its own, or colours, into the log."""
    log.setup(fmt=fmt)
    forged = "x\n2026-01-01 00:00:00 E llmrun: forged\r\x1b[31m\x00\u2028\x85\x9b31m\u202e"
    logging.getLogger("llmrun.part").warning("no model %s", forged)
    (line,) = capsys.readouterr().err.splitlines()
    text = json.loads(line)["message"] if fmt == "json" else line
    assert text.endswith(
        r"no model x\n2026-01-01 00:00:00 E llmrun: forged\r\x1b[31m\x00\u2028\x85\x9b31m\u202e"
    )


def test_setup_json_field_cannot_pass_for_one_of_its_own(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup(fmt="json")
    logging.getLogger("llmrun.part").info("said", extra=log.fields(level="error", message="forged"))
    record = json.loads(capsys.readouterr().err)
    assert (record["level"], record["message"]) == ("info", "said")


def test_setup_json_time_is_iso_8601_with_milliseconds_and_offset(capsys: pytest.CaptureFixture[str]) -> None:
    log.setup(fmt="json")
    logging.getLogger("llmrun.part").info("said")
    text = json.loads(capsys.readouterr().err)["time"]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}[+-]\d\d:\d\d", text)


@pytest.mark.parametrize("fmt", LOG_FORMATS)
def test_adopt_asyncio_writes_what_happened_and_not_what_it_quotes(
    capsys: pytest.CaptureFixture[str], fmt: str
) -> None:
    log.setup(fmt=fmt)
    log.adopt("asyncio")

    async def fail() -> None:
        raise ValueError("-".join(("Mellon", "7315")))  # a traceback has the line itself

    async def forget() -> None:
        task = asyncio.create_task(fail())
        await asyncio.wait({task})
        del task
        gc.collect()

    asyncio.run(forget())
    told = capsys.readouterr().err
    assert "Task exception was never retrieved" in told
    assert "ValueError" in told
    assert "Mellon-7315" not in told


def test_adopt_asyncio_writes_to_a_closed_connection_are_no_records(
    capsys: pytest.CaptureFixture[str],
) -> None:
    log.setup()
    log.adopt("asyncio")

    async def write_to_who_hung_up() -> None:
        ours, theirs = socket.socketpair()
        _, writer = await asyncio.open_connection(sock=ours)
        theirs.close()
        for _ in range(20):
            writer.write(b"a")
        writer.close()

    asyncio.run(write_to_who_hung_up())
    assert capsys.readouterr().err == ""
