"""From a sequence's token bytes to text that may be shown: valid UTF-8, without stop strings."""

from __future__ import annotations

import codecs


class TextStream:
    """Decodes bytes and holds back only what could still become a stop string.

    Bytes of an unfinished character wait for the rest; bytes that are none become U+FFFD. After
    `push` completes a stop string, `stopped` names it and the text ends before it. `withheld` is the text, at
    the end of what was pushed, that was not given out.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._stops = stops
        self._longest = max(map(len, stops), default=0)
        self.withheld = ""
        self.stopped: str | None = None

    def push(self, piece: bytes, quiet: bool = False) -> str:
        """The text that is certain after these bytes; `quiet`: no stop string ends in them."""
        text = self.withheld + self._decoder.decode(piece)
        if not self._stops:
            return text
        if quiet:
            self.withheld = ""
            return text
        found = [(at, stop) for stop in self._stops if (at := text.find(stop)) >= 0]
        if found:
            at, self.stopped = min(found, key=lambda hit: (hit[0], -len(hit[1])))
            self.withheld = text[at:]
            return text[:at]
        keep = self._possible_stop(text)
        self.withheld = text[len(text) - keep :]
        return text[: len(text) - keep]

    def flush(self) -> str:
        """What was held back, once nothing more comes. Half a character at the end is dropped."""
        held, self.withheld = self.withheld, ""
        return held

    def _possible_stop(self, text: str) -> int:
        """Length of the longest end of `text` that begins a stop string."""
        for length in range(min(len(text), self._longest - 1), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0
