"""Server-sent events: a JSON value in, the bytes of one event out.

https://html.spec.whatwg.org/multipage/server-sent-events.html
"""

from __future__ import annotations

import msgspec

PING = b": ping\n\n"
"""A comment: keeps a quiet connection alive, and no client shows it."""

_encoder = msgspec.json.Encoder()


def event(value: object) -> bytes:
    """`value` as the data of one event.

    The three characters that some clients take for the end of a line, beside the two that are, are
    written as JSON escapes.
    """
    data = _encoder.encode(value)
    if b"\xe2\x80" in data or b"\xc2\x85" in data:
        data = data.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
        data = data.replace(b"\xc2\x85", rb"\u0085")
    return b"data: " + data + b"\n\n"
