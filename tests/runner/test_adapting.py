from __future__ import annotations

import math

import pytest

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.runner.adapting import scales
from llmrun.types import AdapterScale


def test_scales_nothing_said_is_every_adapter_at_one() -> None:
    assert scales(None, 2) == (1.0, 1.0)
    assert scales(None, 0) == ()


def test_scales_those_left_out_do_not_count() -> None:
    assert scales([], 2) == (0.0, 0.0)
    assert scales([AdapterScale(id=1, scale=0.5)], 3) == (0.0, 0.5, 0.0)


@pytest.mark.parametrize(
    ("wanted", "count", "said"),
    [
        ([AdapterScale(id=2)], 2, "adapters 0 to 1"),
        ([AdapterScale(id=-1)], 2, "adapter -1"),
        ([AdapterScale(id=0)], 0, "no adapters"),
        ([AdapterScale(id=0), AdapterScale(id=0)], 1, "named twice"),
        ([AdapterScale(id=0, scale=math.nan)], 1, "nan"),
        ([AdapterScale(id=0, scale=-math.inf)], 1, "-inf"),
        ([AdapterScale(id=0, scale=1e39)], 1, "1e\\+39"),
    ],
)
def test_scales_that_cannot_be_had_are_refused(wanted: list[AdapterScale], count: int, said: str) -> None:
    with pytest.raises(LlmrunError, match=said) as caught:
        scales(wanted, count)
    assert caught.value.kind is INVALID_REQUEST
    assert caught.value.field == "adapters"
