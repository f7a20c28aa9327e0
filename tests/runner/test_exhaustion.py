from __future__ import annotations

from llmrun.errors import NO_MEMORY
from llmrun.runner.exhaustion import exhausted


def test_exhausted_is_also_who_can_have_no_more_whatever_the_words() -> None:
    error = exhausted(SyntaxError("can't load unicodedata module"), "while a was loaded", spare=1 << 60)
    assert error is not None
    assert (error.kind, error.message) == (NO_MEMORY, "memory ran out while a was loaded")
    assert exhausted(SyntaxError("x"), "", spare=4096) is None
