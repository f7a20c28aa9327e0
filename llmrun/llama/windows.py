"""Cuts a long text where a vocabulary of the BPE kind would cut it too. Pure.

llama.cpp splits such a text into words by regular expressions, and some of these recurse once a character:
a run of tens of thousands of letters overflows the stack and ends the process. Piece by piece none does.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

WIDTH = 16_384
"""Characters. llama.cpp's recursion takes some 250 bytes of stack for each."""

# In front of a space between words, and behind a line's end: every splitter in llama.cpp parts there, and
# no control token that swallows white space stands beside it.
_BORDER = re.compile(r"(?<=[A-Za-z,.])(?= [A-Za-z])|(?<=\n)(?=[^\s<])")
_SPELLING = 64  # no control token is spelt with more characters


def windows(text: str) -> Iterator[str]:
    """`text` in pieces of at most `WIDTH` characters; a text without a border in reach is cut all the same,
    though not behind what may begin a control token."""
    start = 0
    while len(text) - start > WIDTH:
        end = start + WIDTH
        cut = max((border.end() for border in _BORDER.finditer(text, end - WIDTH // 2, end)), default=0)
        cut = cut or text.rfind("<", end - _SPELLING, end)
        cut = cut if cut > start else end
        yield text[start:cut]
        start = cut
    yield text[start:]
