from __future__ import annotations

from llmrun.errors import MODEL_LOAD, NO_MEMORY, LlmrunError
from llmrun.runner.exhaustion import exhausted


def test_exhausted_is_also_who_can_have_no_more_whatever_the_words() -> None:
    error = exhausted(SyntaxError("can't load unicodedata module"), "while a was loaded", spare=1 << 60)
    assert error is not None
    assert (error.kind, error.message) == (NO_MEMORY, "memory ran out while a was loaded")
    assert exhausted(SyntaxError("x"), "", spare=4096) is None


def test_exhausted_takes_llama_cpps_words_for_it_though_there_is_memory_again() -> None:
    refused = LlmrunError(MODEL_LOAD, "llama.cpp cannot load m.gguf: mmap failed: Cannot allocate memory")
    error = exhausted(refused, "while a was loaded", spare=4096)
    assert error is not None
    assert error.kind is NO_MEMORY
    assert (
        exhausted(LlmrunError(MODEL_LOAD, "llama.cpp cannot load m.gguf: bad magic"), "", spare=4096) is None
    )
