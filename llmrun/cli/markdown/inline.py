"""Emphasis, code and links within one line of Markdown, told as early as they can be. Pure.

A mark that finds no other end on its line is text, as are all marks that CommonMark takes for text: what
may be emphasis is given to a CommonMark parser, whose word counts.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

LIMIT = 600  # characters that are held for the other end of a mark
PLAIN: frozenset[str] = frozenset()
_STYLES = {"em": "italic", "strong": "bold", "s": "strike", "link": "underline"}
_NO_MARK = re.compile(r"[^*_~`\[\\]+")
_LINK = re.compile(r"\[([^\[\]]+)\]\(\s*<?([^\s<>)]*)>?(?:\s+\"[^\"]*\")?\s*\)")
_PUNCTUATION = set("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


@dataclass(frozen=True)
class Run:
    """Text in one style: a set of bold, italic, strike, underline, code, dim, heading."""

    text: str
    style: frozenset[str] = PLAIN


Certain = tuple[list[Run], int]
"""Runs, and how many of the held characters they are."""


class Inline:
    """One line. `feed` gives the runs that are certain, `close` those that are left."""

    def __init__(self) -> None:
        self._held = ""
        self._before = " "
        self._tried = 0

    def feed(self, text: str) -> list[Run]:
        self._held += text
        return self._take(final=False)

    def close(self) -> list[Run]:
        runs = self._take(final=True)
        self._before = " "
        return runs

    def _take(self, *, final: bool) -> list[Run]:
        runs: list[Run] = []
        while self._held:
            certain = self._next(final=final or len(self._held) > LIMIT)
            if certain is None:
                break
            found, count = certain
            runs += found
            self._before = self._held[count - 1]
            self._held = self._held[count:]
            self._tried = 0
        return runs

    def _next(self, *, final: bool) -> Certain | None:
        """What begins at the first held character; None where that cannot be told yet."""
        held = self._held
        if plain := _NO_MARK.match(held):
            return [Run(plain[0])], plain.end()
        if held[0] == "\\":
            return _escape(held, final=final)
        if held[0] == "[":
            return _link(held, final=final)
        marks = held[: len(held) - len(held.lstrip(held[0]))]
        if marks == held and not final:
            return None
        if held[0] == "`":
            return _code(held, marks, final=final)
        return self._emphasis(held, marks, final=final)

    def _emphasis(self, held: str, marks: str, *, final: bool) -> Certain | None:
        after = held[len(marks) : len(marks) + 1]
        inside_word = marks[0] == "_" and self._before.isalnum()
        if not after or after.isspace() or inside_word or marks == "~":
            return [Run(marks)], len(marks)
        for closing in re.finditer(re.escape(marks[0]) + "+", held[len(marks) :]):
            end = len(marks) + closing.end()
            if end == len(held) and not final:
                break
            if end > self._tried:
                self._tried = end
                if runs := _emphasised(held[:end]):
                    return runs, end
        return ([Run(marks)], len(marks)) if final else None


def _escape(held: str, *, final: bool) -> Certain | None:
    if len(held) == 1:
        return ([Run(held)], 1) if final else None
    return ([Run(held[1])], 2) if held[1] in _PUNCTUATION else ([Run("\\")], 1)


def _code(held: str, marks: str, *, final: bool) -> Certain | None:
    closing = re.compile(f"(?<!`){marks}(?!`)").search(held, len(marks))
    if closing and (final or closing.end() < len(held)):
        text = held[len(marks) : closing.start()]
        if text.startswith(" ") and text.endswith(" ") and text.strip():
            text = text[1:-1]
        return [Run(text, frozenset({"code"}))], closing.end()
    return ([Run(marks)], len(marks)) if final else None


def _link(held: str, *, final: bool) -> Certain | None:
    """`[text](address)`, shown as the text and the address, which a terminal's reader cannot hover over."""
    if link := _LINK.match(held):
        return _flat(_parser().parseInline(link[0])[0].children or []), link.end()
    text = re.match(r"\[[^\[\]]*(\]\(?)?", held)
    assert text is not None
    goes_on = text.end() == len(held) or (text[0].endswith("](") and ")" not in held)
    return None if goes_on and not final else ([Run("[")], 1)


def _emphasised(text: str) -> list[Run]:
    """The runs of `text` where its first and last marks belong together; else none."""
    children = [
        child for child in _parser().parseInline(text)[0].children or () if child.content or child.nesting
    ]
    closes = children and children[-1].type == children[0].type.replace("_open", "_close")
    if not closes or children[0].nesting != 1:
        return []
    levels = 0
    for child in children[:-1]:
        levels += child.nesting
        if levels == 0:  # the first closed before the end: "*a* b *c*" is taken in parts
            return []
    return _flat(children)


def _flat(tokens: Iterable[Any]) -> list[Run]:
    """A CommonMark parser's inline tokens as runs."""
    runs: list[Run] = []
    styles: list[str] = []
    address, begun = "", 0
    for token in tokens:
        kind = token.type.rpartition("_")[0]
        if token.nesting == 1:
            styles.append(_STYLES[kind])
            if kind == "link":
                address, begun = str(token.attrs["href"]), len(runs)
        elif token.nesting == -1:
            styles.pop()
            if kind == "link" and address != "".join(run.text for run in runs[begun:]):
                runs.append(Run(f" ({address})", frozenset({"dim"})))
        elif token.content:
            more = {"code"} if token.type == "code_inline" else set()
            runs.append(Run(token.content, frozenset({*styles, *more})))
    return runs


@functools.cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    return MarkdownIt("commonmark", {"html": False}).enable("strikethrough").disable(["entity", "image"])
