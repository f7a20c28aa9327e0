"""OpenAI's words for how much a model is to think."""

from __future__ import annotations

from typing import Literal

from llmrun.types import Thinking

Effort = Literal["none", "minimal", "low", "medium", "high"]


def thinking(effort: Effort | None) -> Thinking | None:
    """The same in the daemon's words; None where nothing was said."""
    if effort is None:
        return None
    return Thinking(enabled=False) if effort == "none" else Thinking(enabled=True, effort=effort)
