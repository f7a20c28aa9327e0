"""Lines of a width: words go out when they end, on a new line where they no longer fit. Knows no Markdown."""

from __future__ import annotations

import re
from collections.abc import Callable

from llmrun.cli.markdown.inline import PLAIN, Run

_CODES = {
    **{"bold": "1", "dim": "2", "italic": "3", "underline": "4", "strike": "9"},
    **{"code": "36", "heading": "1;35"},
}
_WIDE = "\u1100-\uffff\U00020000-\U0003ffff"
_WIDE_OR_NOT = re.compile(f"[{_WIDE}]|[^{_WIDE}]+")
_PARTS = re.compile(r"\s+|\S+")


def painted(text: str, style: frozenset[str] = PLAIN) -> str:
    """`text` with the terminal's codes for its style, and none left on behind it."""
    codes = ";".join(_CODES[name] for name in sorted(style))
    return f"\x1b[{codes}m{text}\x1b[0m" if codes and text else text


class Wrapper:
    """Writes runs. `width`: columns; `hang`: what each further line of a paragraph begins with."""

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._write = write
        self._width = width
        self._word: list[Run] = []
        self._space = ""
        self._column = 0
        self._hang = ""
        self._wraps = True

    def begin(self, prefix: str, hang: str, style: frozenset[str] = PLAIN) -> None:
        """Write what a line begins with; the lines that it wraps to begin with `hang`."""
        self._write(painted(prefix, style))
        self._column += _cells(prefix)
        self._hang = hang

    def put(self, run: Run) -> None:
        for part in _PARTS.findall(run.text):
            if part.isspace():
                self.end_word()
                self._space += part
                continue
            for piece in _breakable(part):
                self._add(Run(piece, run.style))
                if _cells(piece) > len(piece):  # no spaces between words of wide characters
                    self.end_word()

    def _add(self, run: Run) -> None:
        if self._word and self._word[-1].style == run.style:
            run = Run(self._word.pop().text + run.text, run.style)
        self._word.append(run)

    def end_line(self, *, wraps: bool = True) -> None:
        """`wraps`: whether the next line does."""
        self.end_word()
        self._write("\n")
        self._wraps = wraps
        self._column, self._space, self._hang = 0, "", ""

    def end_word(self) -> None:
        """Write the word that is held."""
        if not self._word:
            return
        cells = sum(_cells(run.text) for run in self._word)
        too_long = self._wraps and self._column + len(self._space) + cells > self._width
        if too_long and self._column > _cells(self._hang):
            self._write(f"\n{painted(self._hang, frozenset({'dim'}))}")
            self._column, self._space = _cells(self._hang), ""
        self._write(self._space + "".join(painted(run.text, run.style) for run in self._word))
        self._column += len(self._space) + cells
        self._word, self._space = [], ""


class Words:
    """Text as it is, in pieces as they come, but lines are broken between words. Those of code, between
    fences, are not: they are there to be copied."""

    def __init__(self, write: Callable[[str], None], width: int) -> None:
        self._wrapper = Wrapper(write, width)
        self._line = ""
        self._in_code = False

    def feed(self, text: str) -> None:
        first, *others = text.split("\n")
        self._put(first)
        for line in others:
            self._in_code ^= self._line.lstrip().startswith("```")
            self._line = ""
            self._wrapper.end_line(wraps=not self._in_code)
            self._put(line)

    def close(self) -> None:
        """Write the word that is held. The line is not ended."""
        self._wrapper.end_word()

    def _put(self, text: str) -> None:
        self._line += text
        self._wrapper.put(Run(text))


def _breakable(text: str) -> list[str]:
    """Wide characters one by one, others together."""
    return [text] if text.isascii() else _WIDE_OR_NOT.findall(text)


def _cells(text: str) -> int:
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)
