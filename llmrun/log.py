"""Logging for all three processes: one line a record, to stderr, never to stdout."""

from __future__ import annotations

import json
import logging
import sys
from typing import Literal

ROOT = logging.getLogger("llmrun")

LogFormat = Literal["text", "json"]


class _JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": self.formatTime(record, "%Y-%m-%dT%H:%M:%S"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def setup(level: str = "INFO", fmt: LogFormat = "text") -> None:
    """Send our records to stderr. Called once per process, by its entry point only."""
    handler = logging.StreamHandler(sys.stderr)
    if fmt == "json":
        handler.setFormatter(_JsonFormatter())
    else:
        handler.setFormatter(
            logging.Formatter("%(asctime)s %(levelname).1s %(name)s: %(message)s", "%Y-%m-%d %H:%M:%S")
        )
    ROOT.handlers[:] = [handler]
    ROOT.setLevel(level)
    ROOT.propagate = False
