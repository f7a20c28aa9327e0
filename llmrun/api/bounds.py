"""Bounds that the bodies of every dialect keep."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field

INT32 = 2**31 - 1
MAX_STOPS = 64
MAX_TOOLS = 512
MAX_MESSAGES = 10_000  # checking one costs tens of microseconds


def _listed(value: object) -> object:
    return [value] if isinstance(value, str) else value


StopList = Annotated[list[Annotated[str, Field(min_length=1)]], Field(max_length=MAX_STOPS)]
"""Texts that end an answer."""
Stops = Annotated[StopList, BeforeValidator(_listed)]
"""The same; one may stand alone."""
