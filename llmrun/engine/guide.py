"""What the engine asks about the next token of an answer that is not free, and tells after it."""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt


class Guide(Protocol):
    """One answer's way. Calls from one thread."""

    @property
    def thought(self) -> int:
        """Tokens so far that were reasoning."""

    @property
    def quiet(self) -> bool:
        """Whether stop strings are not looked for in the newest token."""

    def forced(self) -> list[int]:
        """The tokens that must come next, as far as no choice is left. Changes nothing."""

    def allowed(self) -> npt.NDArray[np.intp] | None:
        """Ids of the tokens that may come next, at least one; None: any."""

    def replaces(self, token: int) -> bool:
        """Whether this sampled token may not stand; `forced` then has what comes in its place."""

    def accept(self, token: int) -> None:
        """The answer goes on with this token, which was forced, or is allowed and not replaced."""

    @property
    def ended(self) -> bool:
        """Whether nothing but an end token can follow."""


class Grammar(Guide, Protocol):
    """A guide over one grammar."""

    def allowed(self) -> npt.NDArray[np.intp]:
        """Ids of the tokens that may come next, at least one."""

    def fresh(self) -> Grammar:
        """Another of the same grammar, as far on its way as this one."""

    def enter(self, text: bytes) -> bool:
        """Go on by `text` where the grammar takes all of it; else say False and change nothing."""
