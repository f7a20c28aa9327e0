"""How large a value of a template is: what bounds the time that Python's own functions take for it.

A list may hold another twice, that one a third twice, and so on: forty lines make a value that a comparison
walks for years, and nothing can end that. Each part is looked at once here, however often it is held.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from itertools import chain
from typing import Any

from jinja2.utils import Namespace

MAX_DEPTH = 200
"""Of values in values. Python hashes a tuple without looking how deep it is, until the process crashes."""
MAX_BITS = 100_000
"""Of a whole number: from there on a product takes its time."""
ITEM = 8
"""Characters that one item of a list counts for: Python takes so much longer for it."""


class Once(Iterator[Any]):
    """What a lazy filter gives: true, and gone through once, as a generator is, but computed. A chain of
    generators has no bound, and Python crashes where a long one ends.

    error  what the filter met behind the last item: raised there, for nobody may come so far
    """

    def __init__(self, items: list[Any], error: Exception | None = None) -> None:
        self._left = items[::-1]
        self._error = error

    def __next__(self) -> Any:
        if self._left:
            return self._left.pop()
        if self._error:
            raise self._error
        raise StopIteration


def weigh(value: Any, room: int, known: Mapping[int, int]) -> int:
    """The characters of `value` and of all that it holds, and `ITEM` for each part: counted as often as it is
    held. OverflowError past `room`, and for what is too deep.

    known  weights by `id`, of values that do not change
    """
    if isinstance(value, (str, bytes)):
        weight = len(value)
    elif isinstance(value, int):
        if value.bit_length() > MAX_BITS:
            raise OverflowError(f"it makes a number of more than {MAX_BITS} bits")
        return 1
    else:
        weight = _Scale(room, known).weight(value, 0)
    if weight > room:
        raise too_large(room)
    return weight


def too_large(room: int) -> OverflowError:
    return OverflowError(f"it makes a value larger than {room} characters or {room // ITEM} items")


class _Scale:
    def __init__(self, room: int, known: Mapping[int, int]) -> None:
        self._room = room
        self._known = known
        self._seen: dict[int, int] = {}  # all of it is held by the value, so no id is used again

    def weight(self, value: Any, depth: int) -> int:
        if isinstance(value, (str, bytes)):
            return len(value) + ITEM
        parts = _parts(value)
        if parts is None:
            return ITEM
        key = id(value)
        weight = self._known.get(key) or self._seen.get(key)
        if weight is not None:
            return weight
        if depth == MAX_DEPTH:
            raise OverflowError(f"it puts values into each other, more than {MAX_DEPTH} deep")
        weight = ITEM
        for part in parts:
            weight += self.weight(part, depth + 1)
            if weight > self._room:
                raise too_large(self._room)
        self._seen[key] = weight
        return weight


def _parts(value: Any) -> Iterable[Any] | None:
    """What a value holds; None for one that holds nothing a template could have put there."""
    if value is None or isinstance(value, (int, float)):
        return None
    if isinstance(value, (list, tuple)):
        return value
    if isinstance(value, Mapping):
        return chain(value, value.values())
    if isinstance(value, Once):
        return value._left
    if isinstance(value, ItemsView):
        return chain.from_iterable(value)
    if isinstance(value, (KeysView, ValuesView)):
        return value
    if isinstance(value, Namespace):
        held: dict[str, Any] = value._Namespace__attrs
        return chain(held, held.values())
    return None
