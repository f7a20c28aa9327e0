"""OpenAI's words for how much a model is to think."""

from __future__ import annotations

from typing import Literal

from llmrun.types import Thinking

Effort = Literal["none", "minimal", "low", "medium", "high", "xhigh", "max"]
EFFORTS = (
    "`none` (no reasoning), `minimal`, `low`, `medium`, `high`, `xhigh`, `max`, as the template has them; "
    "where it can only be turned on and off, `minimal` is off and what is above it is on"
)


def thinking(
    effort: Effort | None, budget: int | None = None, *, field: str, think: bool | None = None
) -> Thinking | None:
    """The same in the daemon's words; None where nothing was said. `budget`: tokens, −1 for any number;
    `think`: on or off without an effort. `field` is that of the effort, named in errors."""
    budget = None if budget == -1 else budget
    if effort is None and think is not None:
        return Thinking(enabled=think, budget=budget if think else None, field="think")
    if effort is None:
        return None if budget is None else Thinking(budget=budget, field=field)
    if effort == "none":
        return Thinking(enabled=False, field=field)
    return Thinking(enabled=True, effort=effort, budget=budget, field=field)
