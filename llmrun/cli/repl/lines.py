"""When a message is complete, and what it then says. Pure.

A message is one line, unless the line ends in a backslash, which continues it, or the message begins
with three double quotes: then it goes on to the next three.
"""

from __future__ import annotations

FENCE = '"""'


def is_open(text: str) -> bool:
    """Whether more lines belong to `text`, the lines typed so far."""
    if text.lstrip().startswith(FENCE):
        return FENCE not in text.lstrip()[len(FENCE) :]
    return text.endswith("\\")


def message(text: str) -> str:
    """What the typed lines say, without the marks that held them together. An unclosed fence ends with
    the text."""
    stripped = text.strip()
    if stripped.startswith(FENCE):
        body, _, after = stripped[len(FENCE) :].partition(FENCE)
        return (body + after).strip("\n")
    return stripped.removesuffix("\\").replace("\\\n", "\n").rstrip()
