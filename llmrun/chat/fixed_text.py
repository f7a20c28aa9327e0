"""How long a run of text a schema or a pattern can force: a generous bound, in characters.

llguidance works out forced text whole, a microsecond or so for each byte, however little of it will be
used, also for a mask. A grammar that could force megabytes at once (ten thousand times a long `const`)
must not hold up a decode step: past `LIMIT` nothing is forced, and the model finds its way by masks.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

LIMIT = 2**16

_REPEAT = re.compile(r"\{(\d+)(?:,\d*)?\}")
_CLASS = re.compile(r"\[\^?\]?(?:\\.|[^\]\\])*\]")


def of_pattern(pattern: str) -> float:
    """Every branch counts, everything stands once or as often as it must."""
    open_groups = [0.0]  # the length inside each open group so far
    newest = 0.0  # the length of what a repetition would repeat
    at = 0
    while at < len(pattern):
        end = at + 1
        if pattern[at] == "(":
            open_groups.append(0.0)
        elif pattern[at] == ")":
            newest = open_groups.pop()
            open_groups = open_groups or [0.0]
            open_groups[-1] += newest
        elif repeat := _REPEAT.match(pattern, at):
            more = newest * (float(repeat[1]) - 1)
            open_groups[-1] += more
            newest += more
            end = repeat.end()
        else:
            found = _CLASS.match(pattern, at)
            end = found.end() if found else at + (2 if pattern[at] == "\\" else 1)
            newest = 1.0
            open_groups[-1] += newest
        at = end
    return sum(open_groups)


def of_schema(schema: dict[str, Any]) -> float:
    """The longest run; infinite where a value requires another of its own kind inside."""
    try:
        return _Bound(schema).of(schema)
    except RecursionError:
        return math.inf


class _Bound:
    def __init__(self, root: dict[str, Any]) -> None:
        self._root = root
        self._known: dict[str, float] = {}
        self._open: dict[str, int] = {}  # references being followed, and how many choices led to each
        self._choices = 0

    def of(self, part: object) -> float:
        if not isinstance(part, dict):
            return 8.0
        values = [part["const"]] if "const" in part else _list(part.get("enum"))
        total = max((float(len(json.dumps(value))) for value in values), default=8.0)
        if isinstance(pattern := part.get("pattern"), str):
            total += of_pattern(pattern)
        if isinstance(target := part.get("$ref"), str):
            total += self._reference(target)
        required = _list(part.get("required"))
        for name, child in _dict(part.get("properties")).items():
            total += len(name) + 4 + self._inside(child, optional=name not in required)
        for name, child in _dict(part.get("patternProperties")).items():
            total += of_pattern(name) + self._inside(child, optional=True)
        for keyword in ("anyOf", "oneOf"):
            total += sum(self._inside(child, optional=True) for child in _list(part.get(keyword)))
        for keyword in ("allOf", "prefixItems", "items"):
            total += sum(self._inside(child, optional=False) for child in _list(part.get(keyword)))
        least = part.get("minItems")
        times = least if isinstance(least, int) and least > 0 else 0
        if isinstance(items := part.get("items"), dict):
            total += max(1, times) * self._inside(items, optional=not times)
        return total + self._inside(part.get("additionalProperties"), optional=True)

    def _inside(self, part: object, *, optional: bool) -> float:
        self._choices += optional
        length = self.of(part)
        self._choices -= optional
        return length

    def _reference(self, target: str) -> float:
        if target in self._open:
            return 0.0 if self._choices > self._open[target] else math.inf
        if target not in self._known:
            self._open[target] = self._choices
            self._known[target] = self.of(self._resolved(target))
            del self._open[target]
        return self._known[target]

    def _resolved(self, target: str) -> object:
        """The part that a reference within the schema names; infinite text for any other."""
        part: object = self._root
        for step in target.removeprefix("#").split("/")[1:]:
            key = step.replace("~1", "/").replace("~0", "~")
            if isinstance(part, list) and key.isdecimal() and int(key) < len(part):
                part = part[int(key)]
            else:
                part = _dict(part).get(key)
        return part


def _list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _dict(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
