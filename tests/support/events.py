"""What events add up to."""

from __future__ import annotations

from collections.abc import Iterable

from llmrun.types import Event, Text


def joined_text(events: Iterable[Event], index: int = 0) -> str:
    """The whole text of one answer."""
    return "".join(e.text for e in events if isinstance(e, Text) and e.index == index)
