"""JSON that every client reads as one line. In: a value. Out: bytes without a line's end."""

from __future__ import annotations

import msgspec

Json = dict[str, object]
"""A JSON object."""

_encoder = msgspec.json.Encoder()


def one_line(value: object) -> bytes:
    """`value` as JSON. The three characters that some clients take for the end of a line, beside the two
    that are, are written as JSON escapes."""
    data = _encoder.encode(value)
    if b"\xe2\x80" in data or b"\xc2\x85" in data:
        data = data.replace(b"\xe2\x80\xa8", rb"\u2028").replace(b"\xe2\x80\xa9", rb"\u2029")
        data = data.replace(b"\xc2\x85", rb"\u0085")
    return data
