"""How a template writes a call's arguments, read off what it renders."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from llmrun.chat.syntax.atoms import common_end, common_start
from llmrun.chat.syntax.form import (
    CDATA,
    JSON_TYPES,
    Arguments,
    BareKeyArguments,
    JsonArguments,
    JsonType,
    NestedArguments,
    PythonArguments,
    TaggedArguments,
)
from llmrun.chat.syntax.probe import KEYS

VALUES = ("valueZqOne", "valueZqTwo")
PAIR = dict(zip(KEYS, VALUES, strict=True))

_SAMPLES: dict[JsonType, tuple[Any, tuple[str, ...]]] = {
    "string": (VALUES[0], (VALUES[0],)),
    "integer": (4711, ("4711",)),
    "number": (47.25, ("47.25",)),
    "boolean": (True, ("true", "True")),
    "null": (None, ("null", "None")),
    "array": ([True, 4711], ("[true, 4711]", "[true,4711]", "[True, 4711]")),
    "object": ({"innerZq": True}, ('{"innerZq": true}', '{"innerZq":true}', "{'innerZq': True}")),
}

Render = Callable[[dict[str, Any]], str | None]
"""The text of one call with these arguments, from behind the question."""


@dataclass(frozen=True)
class Written:
    """The form, and how many characters of a call's text belong to the arguments in front of the first key
    and behind the last value."""

    form: Arguments
    before: int = 0
    after: int = 0


def json_span(text: str, value: dict[str, Any], start: int = 0) -> tuple[int, int] | None:
    """Where `value` stands as JSON in `text`."""
    decoder = json.JSONDecoder()
    for match in re.finditer(r"\{", text[start:]):
        place = start + match.start()
        try:
            found, end = decoder.raw_decode(text, place)
        except (ValueError, RecursionError):
            continue
        if found == value:
            return place, end
    return None


def derive_arguments(render: Render, name: str) -> Written | None:
    """The form in which the arguments of a call of `name` stand behind it. None where they do not show."""
    text = render(PAIR)
    if text is None or name not in text:
        return None
    if json_span(text, PAIR):
        return Written(JsonArguments())
    if not _in_order(text, [name, KEYS[0], VALUES[0], KEYS[1], VALUES[1]]):
        return None
    opening, between, middle, end = _split(text, name)
    if middle.startswith(closing := f"</{KEYS[0]}>", at := max(middle.find(closing), 0)):
        prefix = middle[:at]
        return Written(NestedArguments(prefix), len(prefix) + 1, len(closing) + len(prefix))
    if opening.endswith("{") and between.startswith(":") and end.startswith(between[1:] + "}"):
        return Written(BareKeyArguments(between[1:]), 1, len(between))
    if opening.endswith("(") and between[:1] == "=" and between[1:] in ("'", '"'):
        return Written(PythonArguments(), 0, 1)
    return _tagged(render, opening, middle, end)


def _in_order(text: str, words: list[str]) -> bool:
    place = 0
    for word in words:
        place = text.find(word, place)
        if place < 0:
            return False
    return True


def _split(text: str, name: str) -> tuple[str, str, str, str]:
    """The texts from the name to the first key, to its value, to the next key, and behind the last value."""
    behind = text[: text.index(KEYS[0])].rindex(name) + len(name)
    opening, _, rest = text[behind:].partition(KEYS[0])
    between, _, rest = rest.partition(VALUES[0])
    middle, _, rest = rest.partition(KEYS[1])
    return opening, between, middle, rest.partition(VALUES[1])[2]


def _tagged(render: Render, opening: str, middle: str, end: str) -> Written | None:
    open_ = common_end(opening, middle)
    close = common_start(middle.removesuffix(open_), end)
    separator = middle.removesuffix(open_).removeprefix(close)
    if not open_.strip() or not close.strip():
        return None
    tail = end.removeprefix(close)
    between: list[tuple[JsonType, str]] = []
    closes: list[tuple[JsonType, str]] = []
    python = False
    for kind in JSON_TYPES:
        around = _around(render, kind, tail)
        if around:
            between.append((kind, around[0]))
            closes.append((kind, around[1]))
            python = python or (kind in ("array", "object") and "True" in around[2])
    cdata = CDATA[0] in (render({KEYS[0]: "<&>"}) or "")
    return Written(
        TaggedArguments(open_, tuple(between), tuple(closes), separator, python, cdata),
        len(open_),
        len(close),
    )


def _around(render: Render, kind: JsonType, tail: str) -> tuple[str, str, str] | None:
    """What stands in front of a value of this type and behind it, and the value as it is written."""
    sample, spellings = _SAMPLES[kind]
    text = render({KEYS[0]: sample})
    if text is None or KEYS[0] not in text:
        return None
    rest = text.rpartition(KEYS[0])[2]
    rest = rest[: len(rest) - len(tail)] if rest.endswith(tail) else rest
    for spelling in spellings:
        if spelling in rest:
            before, _, after = rest.rpartition(spelling)
            return before, after, spelling
    return None
