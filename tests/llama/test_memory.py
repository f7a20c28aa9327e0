"""What `store.anatomy` reads from a header against what llama.cpp allocates, by its own log."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from llmrun.llama import Context, ContextSettings, Model
from llmrun.store.anatomy import anatomy
from llmrun.store.gguf import read_header
from tests.support import kinds
from tests.support.kinds import CTX

SLOTS = 64
MIB = 1 << 20


@pytest.mark.parametrize("kv_type", ["f16", "q8_0"])
@pytest.mark.parametrize("make", kinds.WRITERS.values(), ids=kinds.WRITERS)
def test_anatomy_gives_the_bytes_that_llama_cpp_allocates(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, make: Callable[[Path], Path], kv_type: str
) -> None:
    path = make(tmp_path / "model.gguf")
    sizes = anatomy([read_header(path)])
    model = Model(path)
    try:
        with caplog.at_level(logging.DEBUG, logger="llmrun.llama"):
            Context(model, ContextSettings(CTX, 64, SLOTS, 1, 1, kv_type))
    finally:
        model.close()
    assert sizes.kv_bytes(CTX, kv_type) == pytest.approx(logged("KV", caplog.text), abs=0.01 * MIB)
    assert sizes.state_bytes(SLOTS) == pytest.approx(logged("RS", caplog.text), abs=0.01 * MIB)


def logged(kind: str, text: str) -> float:
    """Bytes of all buffers of this kind that llama.cpp told of."""
    return MIB * sum(map(float, re.findall(rf"{kind} buffer size = +([\d.]+) MiB", text)))
