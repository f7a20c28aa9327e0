"""Keeping text that came from a message apart from what the template wrote, through the rendering.

Every control token has a first visible character, its lead (mostly `<`). Before rendering, each lead in
each string of a message gets a mark behind it: a rare character that this request does not use. So no
control token can begin in a message, whatever the template joins, cuts, trims or removes, and what
the template writes itself stays whole. After tokenising nothing of the marks is left.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, get_args

from llmrun.chat.control import ControlTokens
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Role

# Printable symbols, so that `repr` and JSON leave them as they are, then private use as a last resort.
_MARKS = (range(0x1D300, 0x1D357), range(0x1F030, 0x1F094), range(0xF0000, 0xFFFFE))
_ROLES = frozenset(get_args(Role)) | {"developer"}


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        yield from itertools.chain.from_iterable(map(_strings, value))
        yield from itertools.chain.from_iterable(map(_strings, value.values()))
    elif isinstance(value, (list, tuple)):
        yield from itertools.chain.from_iterable(map(_strings, value))


def _is_role(value: Any) -> bool:
    return isinstance(value, str) and value in _ROLES


class Mark:
    """The mark of one request.

    control  the tokens to keep out
    given    everything that reaches the template from outside; the mark occurs nowhere in it
    known    names that the template itself uses, which must keep working as keys
    """

    def __init__(self, control: ControlTokens, given: Any, known: Collection[str] = ()) -> None:
        used = set().union(*_strings(given), *known)
        signs = map(chr, itertools.chain.from_iterable(_MARKS))
        sign = next((sign for sign in signs if sign not in used), None)
        if sign is None:
            raise LlmrunError(INVALID_REQUEST, "the messages use every private character of Unicode")
        self.sign = sign
        self._control = control
        self._known = known
        leads = "".join(sorted(control.leads))
        self._lead = re.compile(f"[{re.escape(leads)}]") if leads else re.compile(r"(?!)")

    def spell(self, text: str) -> str:
        """`text` with the mark behind each lead. Equal texts stay equal, parts stay parts."""
        return self._lead.sub(rf"\g<0>{self.sign}", text)

    def outside(self, value: Any) -> Any:
        """A copy of JSON data that came from outside, every string in it marked. Known roles stay."""
        if isinstance(value, str):
            return self._part(value)
        if isinstance(value, Mapping):
            return {
                self._key(key): item if key == "role" and _is_role(item) else self.outside(item)
                for key, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.outside(item) for item in value]
        return value

    def clean(self, value: Any) -> Any:
        """`value` as it was before marking; strings inside lists and mappings too."""
        if isinstance(value, str):
            return value.replace(self.sign, "") if self.sign in value else value
        if isinstance(value, Mapping):
            return {self.clean(key): self.clean(item) for key, item in value.items()}
        if isinstance(value, (list, tuple)):
            cleaned = map(self.clean, value)
            return tuple(cleaned) if isinstance(value, tuple) else list(cleaned)
        return value

    def _key(self, key: Any) -> Any:
        if not isinstance(key, str):
            return key
        return self.spell(key) if key in self._known else self._part(key)

    def _part(self, text: str) -> str:
        """`spell`, and a mark in front of what would complete a token begun by the template."""
        marked = self.spell(text)
        visible = text.lstrip()
        if visible and self._completes(visible):
            margin = len(text) - len(visible)
            return marked[:margin] + self.sign + marked[margin:]
        return marked

    def _completes(self, text: str) -> bool:
        tails = self._control.tails
        return text.startswith(tails) or any(tail.startswith(text) for tail in tails)
