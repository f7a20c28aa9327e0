"""Text that arrives bit by bit, for readers written as generators: they yield where they need more."""

from __future__ import annotations

import re
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")
Reading = Generator[None, None, T]
"""A reader: yields each time it needs more text, returns what it read."""
Out = Callable[[str], None]
"""Takes text as soon as it is certain."""


def ignored(_text: str) -> None:
    """Takes text that means nothing."""


@dataclass
class Source:
    """The text that is not read yet is `text[at:]`.

    ended    nothing more comes
    cut      and that is because the length limit was reached
    pinned   from where on text is kept, to come back to; None: from `at`
    """

    text: str = ""
    at: int = 0
    ended: bool = False
    cut: bool = False
    pinned: int | None = None

    def add(self, text: str) -> None:
        """More text; no reader may hold a place in `text` across a yield, but `at` and `pinned`."""
        kept = self.at if self.pinned is None else self.pinned
        self.text = self.text[kept:] + text
        self.at -= kept
        if self.pinned is not None:
            self.pinned = 0

    @property
    def rest(self) -> str:
        return self.text[self.at :]

    @property
    def since_pin(self) -> str:
        """What was read since `pin`; "" where nothing is pinned."""
        return "" if self.pinned is None else self.text[self.pinned : self.at]

    def pin(self) -> None:
        self.pinned = self.at

    def unpin(self) -> None:
        self.pinned = None

    def back(self) -> None:
        """Back to where `pin` was."""
        if self.pinned is not None:
            self.at, self.pinned = self.pinned, None

    def peek(self, ahead: int = 0) -> Reading[str]:
        """The next character, or the one `ahead` behind it; "" at the end. Reads nothing."""
        while self.at + ahead >= len(self.text):
            if self.ended:
                return ""
            yield
        return self.text[self.at + ahead]

    def take(self, count: int) -> str:
        """The next `count` characters, as far as they are there."""
        taken = self.text[self.at : self.at + count]
        self.at += len(taken)
        return taken

    def take_while(self, pattern: re.Pattern[str]) -> str:
        """What of the text at hand matches here."""
        match = pattern.match(self.text, self.at)
        return self.take(len(match[0])) if match else ""

    def skip_space(self) -> Reading[None]:
        while (yield from self.peek()).isspace():
            self.at += 1

    def skip_exactly(self, space: str) -> Reading[None]:
        """Read as much of `space` as stands here."""
        for wanted in space:
            if (yield from self.peek()) != wanted:
                return
            self.at += 1

    def matches(self, literal: str, start: int = 0) -> Reading[int]:
        """The length of the text `start` behind here that is `literal`; 0: it is not, or is not whole.

        White space at the ends of `literal` counts as it is; inside it stands for any white space, or none.
        """
        inner = range(len(literal) - len(literal.lstrip()), len(literal.rstrip()))
        ahead, place = start, 0
        while place < len(literal):
            wanted = literal[place]
            found = yield from self.peek(ahead)
            if place in inner and wanted.isspace():
                if found.isspace():
                    ahead += 1
                else:
                    place += 1
            elif found == wanted:
                ahead += 1
                place += 1
            else:
                return 0
        return ahead - start

    def accept(self, literal: str) -> Reading[bool]:
        """Read the marker `literal` where it stands here. White space before it is skipped with it, and as
        much behind it as it has itself. A part of it that the length limit cut is dropped."""
        core = literal.strip()
        space = 0
        while (yield from self.peek(space)).isspace():
            space += 1
        length = yield from self.matches(core, space)
        if not length:
            if self.cut and _begins(core, self.text[self.at :]):
                self.at = len(self.text)
            return False
        self.at += space + length
        yield from self.skip_exactly(literal[len(literal.rstrip()) :])
        return True

    def until(
        self, markers: Sequence[str], out: Out, last: str = "", *, pin: bool = False
    ) -> Reading[int | None]:
        """Read up to the first of `markers` and behind it; `out` gets the text before. Which one it was, or
        None at the end. Held back is what could still become a marker; where `cut`, that is dropped.

        A marker's own white space in front of it belongs to it as far as it stands there, and where the text
        ends with that of `last`, it is taken for `last`: its token ends the text and is not in it. `pin`: the
        marker's beginning is pinned.
        """
        ways = _ways(markers)
        first = re.compile(f"[{re.escape(''.join({way[0] for way, _ in ways}))}]") if ways else None
        while True:
            match = first.search(self.text, self.at) if first else None
            if text := self.take((match.start() if match else len(self.text)) - self.at):
                out(text)
            if not (yield from self.peek()):
                return None
            if match is None:
                continue
            for way, which in ways:
                if self.text[self.at] == way[0] and (length := (yield from self.matches(way))):
                    if self.cut and any(
                        _begins(other, self.rest) for other, _ in ways if len(other) > len(way)
                    ):
                        self.at = len(self.text)
                        return None
                    if pin:
                        self.pin()
                    self.at += length
                    yield from self.skip_exactly(markers[which][len(markers[which].rstrip()) :])
                    return which
            if self.rest.isspace() and self.ended and not self.cut and last.startswith(self.rest):
                self.at = len(self.text)
                return None
            if self.cut and any(_begins(way, self.rest) for way, _ in ways):
                self.at = len(self.text)
                return None
            out(self.take(1))


def _begins(way: str, rest: str) -> bool:
    """Whether `rest`, all there is, is the beginning of marker `way`, and more than white space of it."""
    visible = "".join(rest.split())
    return bool(visible) and "".join(way.split()).startswith(visible)


def _ways(markers: Sequence[str]) -> list[tuple[str, int]]:
    """Each marker without its last white space, with all, some or none of its first; longest cores first."""
    ways = []
    for which, marker in enumerate(markers):
        if core := marker.strip():
            space = marker[: len(marker) - len(marker.lstrip())]
            ways += [(space[cut:] + core, which) for cut in range(len(space) + 1)]
    return sorted(ways, key=lambda way: -len(way[0].strip()))
