"""The string methods a template calls, on marked text: what they find, they find despite the marks.

Results keep their marks. A mark stays with the character in front of it, so cutting never frees a lead.
"""

from __future__ import annotations

import functools
import re
from bisect import bisect_right
from collections.abc import Callable
from typing import Any

from llmrun.chat.mark import Mark

Span = tuple[int, int]


def _spans(text: str, sought: str, sign: str) -> list[Span]:
    """Where `sought` stands in `text`, signs between its characters left out of account."""
    bare = text.replace(sign, "")
    before = [match.start() - count for count, match in enumerate(re.finditer(re.escape(sign), text))]
    spans = []
    start = bare.find(sought)
    while start >= 0:
        end = start + len(sought)
        spans.append((start + bisect_right(before, start), end + bisect_right(before, end - 1)))
        start = bare.find(sought, end)
    return spans


def _cut(text: str, spans: list[Span]) -> list[str]:
    starts = [0, *(end for _, end in spans)]
    ends = [*(start for start, _ in spans), len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)]


def _split(text: str, spans: list[Span], maxsplit: int = -1) -> list[str]:
    return _cut(text, spans[:maxsplit] if maxsplit >= 0 else spans)


def _rsplit(text: str, spans: list[Span], maxsplit: int = -1) -> list[str]:
    return _cut(text, spans[max(0, len(spans) - maxsplit) :] if maxsplit >= 0 else spans)


def _partition(text: str, spans: list[Span]) -> tuple[str, str, str]:
    if not spans:
        return text, "", ""
    start, end = spans[0]
    return text[:start], text[start:end], text[end:]


def _rpartition(text: str, spans: list[Span]) -> tuple[str, str, str]:
    if not spans:
        return "", "", text
    start, end = spans[-1]
    return text[:start], text[start:end], text[end:]


def _replace(text: str, spans: list[Span], new: str, count: int = -1) -> str:
    return str(new).join(_split(text, spans, count))


def _find(_text: str, spans: list[Span]) -> int:
    return spans[0][0] if spans else -1


def _rfind(_text: str, spans: list[Span]) -> int:
    return spans[-1][0] if spans else -1


def _count(_text: str, spans: list[Span]) -> int:
    return len(spans)


_SEARCHES: dict[str, Callable[..., Any]] = {
    "split": _split,
    "rsplit": _rsplit,
    "partition": _partition,
    "rpartition": _rpartition,
    "replace": _replace,
    "find": _find,
    "rfind": _rfind,
    "count": _count,
}
_ENDS = frozenset({"startswith", "endswith"})
_STRIPS = frozenset({"strip", "lstrip", "rstrip"})


def bound(mark: Mark, text: str, method: str) -> Callable[..., Any] | None:
    """`text.method` for marked `text`; None where marks make no difference to the method."""
    if method in _SEARCHES or method in _ENDS or method in _STRIPS:
        return functools.partial(_call, mark, text, method)
    return None


def _call(mark: Mark, text: str, method: str, /, *args: Any, **kwargs: Any) -> Any:
    sought = args[0] if args and isinstance(args[0], str) else ""
    if method in _ENDS:
        return getattr(mark.clean(text), method)(*mark.clean(args), **kwargs)
    if sought and method in _SEARCHES:
        return _SEARCHES[method](text, _spans(text, mark.clean(sought), mark.sign), *args[1:], **kwargs)
    if sought and method in _STRIPS:
        args = (mark.spell(sought),)
    return getattr(text, method)(*args, **kwargs)
