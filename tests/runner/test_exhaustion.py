from __future__ import annotations

import errno

import pytest

from llmrun.errors import NO_MEMORY
from llmrun.runner.exhaustion import exhausted, is_exhaustion


@pytest.mark.parametrize(
    ("error", "verdict"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (ImportError("libopenblas.so: failed to map segment from shared object"), True),
        (OSError("libllama.so: cannot allocate memory in static TLS block"), True),
        (RuntimeError("can't start new thread"), True),
        (OSError(errno.ENOENT, "No such file"), False),
        (ImportError("No module named x"), False),
        (ValueError("cannot allocate memory"), False),
    ],
)
def test_is_exhaustion_knows_every_wording(error: BaseException, verdict: bool) -> None:
    assert is_exhaustion(error) is verdict


def test_exhausted_is_also_who_can_have_no_more_whatever_the_words() -> None:
    error = exhausted(SyntaxError("can't load unicodedata module"), "while a was loaded", spare=1 << 60)
    assert error is not None
    assert (error.kind, error.message) == (NO_MEMORY, "memory ran out while a was loaded")
    assert exhausted(SyntaxError("x"), "", spare=4096) is None
