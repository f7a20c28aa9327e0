"""The names of steps towards a model: stored as models are, under names that nobody can give and no list
shows.

Whoever makes a model by steps holds its `lock_key`. A step whose lock is free was left by one that was
killed.
"""

from __future__ import annotations

import hashlib
from typing import NamedTuple

_MARK = "."
_PLAIN = "=plain"


class Steps(NamedTuple):
    """`plain`: with the weights as they came; `made`: in the number type that was asked for."""

    plain: str
    made: str


def steps_to(name: str) -> Steps:
    """The steps towards the model `name`."""
    return Steps(f"{_MARK}{name}{_PLAIN}", f"{_MARK}{name}")


def is_step(name: str) -> bool:
    """Whether this is a step's name, and no model's."""
    return name.startswith(_MARK)


def without_mark(name: str) -> str:
    """`name` as a person may read it."""
    return name.removeprefix(_MARK).removesuffix(_PLAIN)


def lock_key(name: str) -> str:
    """The key of the lock that is held while a model is made; `name` is its own or that of one of its
    steps."""
    return f"steps-{hashlib.sha256(without_mark(name).encode()).hexdigest()[:16]}"
