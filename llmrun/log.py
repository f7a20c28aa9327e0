"""Logging for all three processes: one line a record, to stderr, never to stdout.

A record belongs to the request that its task or thread works for (`note_request`), and has fields of its own
(`extra=fields(...)`). A runner writes JSON whatever its daemon is told to write: the daemon takes the records
out of the lines (`record_of`) and gives them its own form.

No record holds what people send or get: prompts, answers, and error messages that may quote them stay out.
Of an error that nobody foresaw only its kind and where it happened are told, but at the level DEBUG.
"""

from __future__ import annotations

import json
import logging
import sys
import traceback
from contextvars import ContextVar
from datetime import datetime
from typing import Any

ROOT = logging.getLogger("llmrun")
LONGEST = 8000  # characters of a message, and the last ones of a traceback


_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
}
_OWN = frozenset({"time", "level", "logger", "request", "message", "error"})
# A message is one line, whatever names and errors in it hold: nobody writes records of his own into the log.
# What terminals take for commands goes too, and what turns text round.
_COMMANDS = (*range(32), *range(127, 160), 0x2028, 0x2029, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
_ONE_LINE = {code: repr(chr(code))[1:-1] for code in _COMMANDS}
_LINES = {code: text for code, text in _ONE_LINE.items() if code != ord("\n")}

_HUNG_UP = "socket.send() raised exception."  # asyncio, of each write to a connection that its client closed

_request: ContextVar[str] = ContextVar("request", default="")


def note_request(request_id: str) -> None:
    """What this task or thread logs from here on is about this request; "": about none."""
    _request.set(request_id)


def fields(**values: Any) -> dict[str, Any]:
    """The `extra` of a logger's call: what its message says, for programs to read."""
    return {"fields": values}


def adopt(*names: str) -> None:
    """Write the records of other libraries' loggers in our form too, each cut to its first line: those behind
    it quote objects, and with them what people send. That somebody hung up is no record."""
    for name in names:
        logger = logging.getLogger(name)
        logger.handlers[:] = ROOT.handlers
        logger.filters[:] = [_first_line]


def record_of(line: bytes, logger: str) -> logging.LogRecord | None:
    """The record that a line of the JSON form holds, now one of `logger`, behind the name that it had; None
    where the line holds none."""
    try:
        told = json.loads(line)
        message, level = f"{told['logger']}: {told['message']}", _LEVELS[told["level"]]
        record = logging.LogRecord(logger, level, "", 0, message, None, None)
        record.exc_text = str(told["error"]) if "error" in told else None
        record.request = str(told.get("request", ""))
        record.fields = {name: value for name, value in told.items() if name not in _OWN}
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        return None
    return record


def _completed(record: logging.LogRecord) -> bool:
    """A handler's filter: gives each record its request and its fields, where it has none yet."""
    record.request = getattr(record, "request", _request.get())
    record.fields = getattr(record, "fields", {})
    return True


def _first_line(record: logging.LogRecord) -> bool:
    """A logger's filter: cuts a record to its first line; False for what is not worth telling."""
    record.msg, record.args = record.getMessage().partition("\n")[0], ()
    return record.msg != _HUNG_UP


def _message(record: logging.LogRecord) -> str:
    return record.getMessage()[:LONGEST].translate(_ONE_LINE)


def _traceback(record: logging.LogRecord) -> str:
    if record.exc_info and record.exc_info[1] and not record.exc_text:
        record.exc_text = "\n\n".join(_told(record.exc_info[1], words=ROOT.isEnabledFor(logging.DEBUG)))
    return (record.exc_text or "")[-LONGEST:].translate(_LINES)


def _told(error: BaseException, *, words: bool) -> list[str]:
    """The traceback of an error and those of the ones it came from, the first of them first. `words`: with
    what they say; of the system's errors that is always told."""
    told: list[str] = []
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        frames = "".join(traceback.format_tb(link.__traceback__))
        said = f": {link}" if words or isinstance(link, OSError) else ""
        told.append(f"Traceback (most recent call last):\n{frames}{type(link).__qualname__}{said}")
        link = link.__cause__ or (None if link.__suppress_context__ else link.__context__)
    return told[::-1]


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created).astimezone().isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": _message(record),
        }
        if request := vars(record)["request"]:
            line["request"] = request
        if error := _traceback(record):
            line["error"] = error
        return json.dumps({**vars(record)["fields"], **line}, ensure_ascii=False)


class _TextFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        when = self.formatTime(record, "%Y-%m-%d %H:%M:%S")
        request = vars(record)["request"]
        about = f"[{request}] " if request else ""
        line = f"{when} {record.levelname[0]} {record.name}: {about}{_message(record)}"
        # Indented: no line of it can pass for a record.
        return "\n".join((line, *(f"  {each}" for each in _traceback(record).splitlines())))


def setup(level: str = "INFO", fmt: str = "text") -> None:
    """Send our records to stderr, `fmt` being one of `llmrun.config.LOG_FORMATS`. Called once per process, by
    its entry point only."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_completed)
    handler.setFormatter(_JsonFormatter() if fmt == "json" else _TextFormatter())
    ROOT.handlers[:] = [handler]
    ROOT.setLevel(level)
    ROOT.propagate = False
