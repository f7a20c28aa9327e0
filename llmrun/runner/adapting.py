"""How strongly each of a model's adapters counts for a request. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from llmrun.engine.request import Adapters
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import AdapterScale

_LARGEST = 3.4028234e38  # of 32-bit floating point numbers, which llama.cpp's are


def scales(wanted: Sequence[AdapterScale] | None, count: int) -> Adapters:
    """A number for each of `count` adapters: what `wanted` says, 0 for those it leaves out; 1 for all where
    it is None. INVALID_REQUEST where it names one that is not there, or one twice."""
    if wanted is None:
        return (1.0,) * count
    chosen: dict[int, float] = {}
    for one in wanted:
        if not 0 <= one.id < count:
            has = f"adapters 0 to {count - 1}" if count else "no adapters"
            raise _refused(f"adapter {one.id} is asked for, but the model has {has}")
        if one.id in chosen:
            raise _refused(f"adapter {one.id} is named twice")
        if not abs(one.scale) <= _LARGEST:
            raise _refused(
                f"the scale of adapter {one.id} is {one.scale}, which is no 32-bit number to count with"
            )
        chosen[one.id] = one.scale
    return tuple(chosen.get(number, 0.0) for number in range(count))


def _refused(what: str) -> LlmrunError:
    return LlmrunError(INVALID_REQUEST, what, hint="llmrun show lists a model's adapters", field="adapters")
