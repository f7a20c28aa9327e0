"""One thing that was looked at: how it is, and how to mend it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Level = Literal["ok", "warning", "broken"]


@dataclass(frozen=True)
class Finding:
    """`mend` is an exact command or step; empty where nothing is wrong."""

    subject: str
    level: Level
    text: str
    mend: str = ""


def ok(subject: str, text: str) -> Finding:
    return Finding(subject, "ok", text)


def warning(subject: str, text: str, mend: str) -> Finding:
    return Finding(subject, "warning", text, mend)


def broken(subject: str, text: str, mend: str) -> Finding:
    return Finding(subject, "broken", text, mend)
