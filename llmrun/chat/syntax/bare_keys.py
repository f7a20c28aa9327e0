"""Reading arguments written as JSON with bare keys and marked strings (Gemma 4), and passing them on as JSON:

{alpha:<|"|>text<|"|>,beta:5,gamma:{d:[1,null,true]}}
"""

from __future__ import annotations

import re

from llmrun.chat.syntax import typed
from llmrun.chat.syntax.source import Out, Reading, Source

_SCALAR = re.compile(r"[^,\]}\s]+")
_MAX_DEPTH = 100


def read(source: Source, quote: str, out: Out) -> Reading[bool]:
    """Read an object, braces and all; `out` gets JSON. False where it stops being one."""
    if (yield from source.peek()) != "{":
        return False
    return (yield from _value(source, quote, out, 0))


def _value(source: Source, quote: str, out: Out, depth: int) -> Reading[bool]:
    yield from source.skip_space()
    if (yield from source.accept(quote)):
        return (yield from _string(source, quote, out))
    first = yield from source.peek()
    if first == '"' or depth > _MAX_DEPTH:
        return False
    if first in ("{", "["):
        return (yield from _nested(source, quote, out, depth))
    text = ""
    while _SCALAR.match((yield from source.peek())):
        text += source.take(1)
    found = typed.literal(text)
    if found is None or not (yield from source.peek()):
        return False
    out(found)
    return True


def _string(source: Source, quote: str, out: Out) -> Reading[bool]:
    out('"')
    if (yield from source.until([quote], lambda text: out(typed.dumps(text)[1:-1]))) is None:
        return False
    out('"')
    return True


def _nested(source: Source, quote: str, out: Out, depth: int) -> Reading[bool]:
    opening = source.take(1)
    close = "}" if opening == "{" else "]"
    out(opening)
    before = ""
    while not (yield from source.accept(close)):
        if before and not (yield from source.accept(",")):
            return False
        out(before)
        before = ", "
        if opening == "{" and not (yield from _key(source, quote, out)):
            return False
        if not (yield from _value(source, quote, out, depth + 1)):
            return False
    out(close)
    return True


def _key(source: Source, quote: str, out: Out) -> Reading[bool]:
    yield from source.skip_space()
    key: list[str] = []
    quoted = yield from source.accept(quote)
    if quoted and (yield from source.until([quote], key.append)) is None:
        return False
    if not quoted:
        while (yield from source.peek()) not in ("", ":", "{", "}", ","):
            key.append(source.take(1))
    out(f"{typed.dumps(''.join(key))}: ")
    return (yield from source.accept(":"))
