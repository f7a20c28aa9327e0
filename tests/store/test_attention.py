from __future__ import annotations

import pytest

from llmrun.store.anatomy import Anatomy, Layer
from llmrun.store.attention import BATCH, LEAST_ROWS, ROOM, Attention, attention, scores
from llmrun.store.ggml import TENSOR_TYPES
from llmrun.store.gguf import Tensor

F32 = next(kind for kind in TENSOR_TYPES.values() if kind.name == "F32")
FLASH, LLAMAS = Attention(True, BATCH), Attention(None, BATCH)


def model(heads: int, weights: int = 0, kv: int = 64) -> Anatomy:
    tensor = Tensor("w", (weights // 4,), F32, 0, weights)
    return Anatomy((Layer(0, kv, kv, 0),), (tensor,), weights, vocab=1, embd=1, ff=1, heads=heads)


@pytest.mark.parametrize(
    ("wanted", "kv_type", "gpu", "expected"),
    [
        ("auto", "f16", False, Attention(False, BATCH)),
        ("auto", "f16", True, LLAMAS),
        ("auto", "q8_0", False, FLASH),
        ("off", "q8_0", False, FLASH),
        ("off", "f32", True, Attention(False, BATCH)),
        ("on", "bf16", False, FLASH),
    ],
)
def test_attention_is_as_settings_kv_type_and_device_have_it(
    wanted: str, kv_type: str, gpu: bool, expected: Attention
) -> None:
    assert attention(model(heads=8), wanted, 4096, kv_type, gpu=gpu, unified=False) == expected


def test_attention_over_cells_that_sequences_share_is_llama_cpps_unless_forbidden() -> None:
    for wanted, expected in (("auto", LLAMAS), ("off", Attention(False, BATCH))):
        assert attention(model(heads=8), wanted, 4096, "f16", gpu=False, unified=True) == expected


def test_attention_over_a_long_context_computes_fewer_rows_at_once() -> None:
    wide = model(heads=32)
    way = attention(wide, "auto", 8192, "f16", gpu=False, unified=False)
    assert way.flash is False
    assert LEAST_ROWS <= way.rows < BATCH
    assert scores(wide, way.rows, 8192) <= ROOM < scores(wide, way.rows + 1, 8192)


def test_attention_whose_scores_have_no_room_is_in_one_pass_unless_forbidden() -> None:
    wide = model(heads=32)
    assert attention(wide, "auto", 131_072, "f16", gpu=False, unified=False) == LLAMAS
    assert attention(wide, "off", 131_072, "f16", gpu=False, unified=False) == Attention(False, LEAST_ROWS)


def test_attention_room_for_scores_grows_with_weights_and_cache() -> None:
    for larger in (model(heads=32, weights=4 << 30), model(heads=32, kv=16_384)):
        assert attention(larger, "auto", 131_072, "f16", gpu=False, unified=False).flash is False
