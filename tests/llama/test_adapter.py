from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama import Adapter
from tests.support.models import tiny_context, tiny_model
from tests.support.tiny import Shape, write_lora


def test_adapter_of_another_shape_is_refused_with_its_path(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    with pytest.raises(LlmrunError, match=r"adapter .*wide\.gguf.*shape") as caught:
        Adapter(model, write_lora(tmp_path / "wide.gguf", Shape(embd=128)))
    assert caught.value.kind is MODEL_LOAD
    model.close()


def test_adapter_outlives_neither_model_nor_a_second_close(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    adapter = Adapter(model, write_lora(tmp_path / "lora.gguf"))
    context = tiny_context(model, adapters=[adapter])
    context.use_adapters((1.0,))
    model.close()
    adapter.close()
    with pytest.raises(ValueError, match="closed"):
        adapter.pointer  # noqa: B018 (reading it is what is tried)


def test_use_adapters_wants_a_scale_for_each(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    context = tiny_context(model, adapters=[Adapter(model, write_lora(tmp_path / "lora.gguf"))])
    with pytest.raises(ValueError, match="2 scales for 1"):
        context.use_adapters((1.0, 0.0))
    model.close()
