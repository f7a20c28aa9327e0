"""Ends an answer by its lines, as editors want it of a text that they show while somebody types.

Rules of llama-server's n_indent and t_max_predict_ms: no line behind the first may be indented less than
wanted (an empty line is indented by nothing), and once the time is over the answer ends with its line.
"""

from __future__ import annotations

_INDENT = " \t"


class Lines:
    """The lines of one answer. Holds back an indentation until it is whole.

    min_indent  spaces and tabs that lines behind the first begin with at least
    seconds     time after which the next newline is the end; None: no limit
    """

    def __init__(self, min_indent: int, seconds: float | None) -> None:
        self._min_indent = min_indent
        self._seconds = seconds
        self._held: str | None = None  # the indentation of a line behind the first, while it may grow

    @classmethod
    def of(cls, min_indent: int, seconds: float | None) -> Lines | None:
        """None where there is nothing to watch."""
        return cls(min_indent, seconds) if min_indent or seconds is not None else None

    def take(self, text: str, elapsed: float, last: bool) -> tuple[str, bool]:
        """What may be shown after `text`, and whether the answer ends with it. `elapsed`: seconds of
        decoding so far; `last`: nothing more comes."""
        shown = ""
        late = self._seconds is not None and elapsed > self._seconds
        while text:
            if self._held is not None:
                line = text.lstrip(_INDENT)
                self._held += text[: len(text) - len(line)]
                if not line:
                    break
                if len(self._held) < self._min_indent:
                    return shown, True
                shown, text, self._held = shown + self._held, line, None
            line, newline, text = text.partition("\n")
            shown += line + newline
            if newline:
                if late:
                    return shown, True
                self._held = ""
        if last and self._held:
            shown, self._held = shown + self._held, ""
        return shown, False
