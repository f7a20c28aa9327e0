"""Reading keyword arguments of a Python call, and passing them on as JSON."""

from __future__ import annotations

import re

from llmrun.chat.syntax import typed
from llmrun.chat.syntax.source import Out, Reading, Source

_WORD = re.compile(r"\w")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "v": "\v", "a": "\a", "0": "\0"}
_DIGITS = {"x": 2, "u": 4, "U": 8}
_HEX = re.compile(r"[0-9a-fA-F]+")
_CLOSING = {"(": ")", "[": "]", "{": "}"}


def read(source: Source, out: Out) -> Reading[bool]:
    """Read arguments up to the closing parenthesis, which is left; `out` gets JSON."""
    out("{")
    before = ""
    while True:
        yield from source.skip_space()
        if (yield from source.peek()) == ")":
            out("}")
            return True
        if before and not (yield from source.accept(",")):
            return False
        yield from source.skip_space()
        key = ""
        while _WORD.match((yield from source.peek())):
            key += source.take(1)
        if not key or not (yield from source.accept("=")):
            return False
        out(f"{before}{typed.dumps(key)}: ")
        yield from source.skip_space()
        if not (yield from _value(source, out)):
            return False
        before = ", "


def _value(source: Source, out: Out) -> Reading[bool]:
    if (quote := (yield from source.peek())) in ("'", '"'):
        return (yield from _string(source, quote, out))
    parts: list[str] = []
    whole = yield from _literal(source, parts.append)
    text = typed.literal("".join(parts).strip()) if whole else None
    if text is None:
        return False
    out(text)
    return True


def _string(source: Source, quote: str, out: Out) -> Reading[bool]:
    """Read a quoted string, quotes and all; `out` gets a JSON string as it comes. A quote that nothing of a
    call follows is part of the string: templates write strings as they are."""
    plain = re.compile(rf"[^\\{quote}]+")
    source.take(1)
    out('"')
    while character := (yield from source.peek()):
        if text := source.take_while(plain):
            out(typed.dumps(text)[1:-1])
        elif character == quote:
            source.take(1)
            if (yield from _ends(source)):
                out('"')
                return True
            out(typed.dumps(quote)[1:-1])
        elif not (yield from _escape(source, out)):
            return False
    return False


def _ends(source: Source) -> Reading[bool]:
    """Whether what follows a quote goes on with the call: the next argument, or its end."""
    ahead = 0

    def space() -> Reading[str]:
        nonlocal ahead
        while (character := (yield from source.peek(ahead))).isspace():
            ahead += 1
        return character

    mark = yield from space()
    if mark != ",":
        ahead += 1
        return mark == "" or (mark == ")" and (yield from space()) in ("", ",", "]", "<"))
    ahead += 1
    yield from space()
    start = ahead
    while _WORD.match((yield from source.peek(ahead))):
        ahead += 1
    return ahead > start and (yield from space()) in ("=", "")


def _escape(source: Source, out: Out) -> Reading[bool]:
    kind = yield from source.peek(1)
    if not kind:
        return False
    source.take(2)
    if kind not in _DIGITS:
        out(typed.dumps(_ESCAPES.get(kind, kind if kind in "\\'\"\n/" else "\\" + kind))[1:-1])
        return True
    for ahead in range(_DIGITS[kind]):
        if not _HEX.match((yield from source.peek(ahead))):
            return False
    code = int(source.take(_DIGITS[kind]), 16)
    if code > 0x10FFFF:
        return False
    out(f"\\u{code:04x}" if code < 0x10000 else typed.dumps(chr(code))[1:-1])
    return True


def _literal(source: Source, out: Out) -> Reading[bool]:
    """Read anything else up to a comma or the closing parenthesis outside brackets and quotes of its own."""
    open_: list[str] = []
    while character := (yield from source.peek()):
        if character in ("'", '"'):
            if not (yield from _quoted(source, character, out)):
                return False
            continue
        if not open_ and character in ",)":
            return True
        if character in _CLOSING:
            open_.append(_CLOSING[character])
        elif character in ")]}" and (not open_ or open_.pop() != character):
            return False
        out(source.take(1))
    return False


def _quoted(source: Source, quote: str, out: Out) -> Reading[bool]:
    """Read a quoted string as it is."""
    out(source.take(1))
    while character := (yield from source.peek()):
        if character == "\\" and not (yield from source.peek(1)):
            return False
        out(source.take(2 if character == "\\" else 1))
        if character == quote:
            return True
    return False
