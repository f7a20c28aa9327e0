"""How OpenAI spells the names of tools, and the choice among them."""

from __future__ import annotations

from typing import Annotated, get_args

from pydantic import Field

from llmrun.api.schema import wrong
from llmrun.api.toolbox import Mode

FunctionName = Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$")]


def spelt_out(value: object) -> object:
    """A bare word of a tool choice as the object that it is short for."""
    if not isinstance(value, str):
        return value
    if value not in get_args(Mode):
        raise wrong(f"should be 'auto', 'none', 'required' or an object, not {value[:24]!r}")
    return {"type": value}
