"""Server-sent events: a JSON value in, the bytes of one event out.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

from llmrun.api.oneline import one_line

PING = b": ping\n\n"
"""A comment: keeps a quiet connection alive, and no client shows it."""


def event(value: object) -> bytes:
    """`value` as the data of one event."""
    return b"data: " + one_line(value) + b"\n\n"
