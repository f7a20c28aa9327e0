"""Reading JSON out of text that arrives bit by bit, passing it on as it comes."""

from __future__ import annotations

import json
import re

from llmrun.chat.syntax.source import Out, Reading, Source

_STRING = re.compile(r'[^"\\\x00-\x1f]+')
_PLAIN = re.compile(r"[\s,:0-9+\-.eEtrufalsn]+")
_CLOSING = {"{": "}", "[": "]"}


def read_object(source: Source, out: Out) -> Reading[bool]:
    """Read a JSON object; `out` gets its text. False where it is none: what is read by then was passed on.

    A raw line break or tab in a string, which JSON forbids and models write, is passed on as its escape.
    """
    if (yield from source.peek()) != "{":
        return False
    passed: list[str] = []

    def keep(text: str) -> None:
        passed.append(text)
        out(text)

    return (yield from _read_nested(source, keep)) and is_object("".join(passed))


def read_value(source: Source) -> Reading[str | None]:
    """The text of any JSON value. None where it is none."""
    passed: list[str] = []
    first = yield from source.peek()
    if first in _CLOSING:
        whole = yield from _read_nested(source, passed.append)
    elif first == '"':
        passed.append(source.take(1))
        whole = yield from _read_string(source, passed.append)
    else:
        while re.match(r"[\w.+\-]", (yield from source.peek())):
            passed.append(source.take(1))
        whole = True
    text = "".join(passed)
    return text if whole and parsed(text) is not None else None


def parsed(text: str) -> tuple[object] | None:
    """The value in JSON `text`, in a tuple; None where it holds none."""
    try:
        return (json.loads(text),)
    except (ValueError, RecursionError):
        return None


def is_object(text: str) -> bool:
    value = parsed(text)
    return value is not None and isinstance(value[0], dict)


def _read_nested(source: Source, out: Out) -> Reading[bool]:
    """Read brackets, which stand here, to their end."""
    open_: list[str] = []
    while character := (yield from source.peek()):
        if plain := source.take_while(_PLAIN):
            out(plain)
        elif character == '"':
            out(source.take(1))
            if not (yield from _read_string(source, out)):
                return False
        elif character in _CLOSING:
            out(source.take(1))
            open_.append(_CLOSING[character])
        elif character == open_[-1]:
            out(source.take(1))
            open_.pop()
            if not open_:
                return True
        else:
            return False
    return False


def _read_string(source: Source, out: Out) -> Reading[bool]:
    """Read a string behind its opening quote."""
    while character := (yield from source.peek()):
        if plain := source.take_while(_STRING):
            out(plain)
        elif character == '"':
            out(source.take(1))
            return True
        elif character == "\\":
            if not (yield from source.peek(1)):
                return False
            out(source.take(2))
        else:
            out(json.dumps(source.take(1))[1:-1])
    return False
