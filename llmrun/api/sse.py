"""Server-sent events: a JSON value in, the bytes of one event out.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from llmrun.api.oneline import one_line

PING = b": ping\n\n"
"""A comment: keeps a quiet connection alive, and no client shows it."""


def event(value: object, name: str = "") -> bytes:
    """`value` as the data of one event, of that name where it has one."""
    data = b"data: " + one_line(value) + b"\n\n"
    return b"event: " + name.encode() + b"\n" + data if name else data
