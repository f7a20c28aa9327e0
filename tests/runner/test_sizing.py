from __future__ import annotations

import pytest

from llmrun.errors import LlmrunError
from llmrun.runner.frames import Load
from llmrun.runner.sizing import Sizes, longest_input, sizes
from llmrun.store.anatomy import CELLS, Anatomy, Layer
from llmrun.store.ggml import TENSOR_TYPES
from llmrun.store.gguf import Tensor

F32 = next(kind for kind in TENSOR_TYPES.values() if kind.name == "F32")


def _model(weights: int = 2_000_000, layers: int = 5, kv: int = 50) -> Anatomy:
    """Weights of `weights` bytes; each token's KV takes 2 × 2 × layers × kv bytes at f16."""
    tensor = Tensor("w", (weights // 4,), F32, 0, weights)
    return Anatomy((Layer(0, kv, kv, 0),) * layers, (tensor,), weights, vocab=1, embd=1, ff=1)


def _sizes(
    model: Anatomy | None = None, *, ctx_train: int = 8192, trimmable: bool = True, **load: object
) -> Sizes:
    spec = Load(name="m", path="/m.gguf", **load)  # type: ignore[arg-type]
    return sizes(
        spec,
        model or _model(),
        ctx_train=ctx_train,
        trimmable=trimmable,
        memory=10_000_000,
        gpu_memory=0,
        cores=4,
    )


def test_sizes_automatic_context_is_capped_by_memory() -> None:
    assert _sizes().ctx == 4000
    assert _sizes(kv_type="f32").ctx == 2000
    assert _sizes(ctx_train=512).ctx == 512


def test_sizes_automatic_context_counts_a_draft_beside_the_model() -> None:
    spec = Load(name="m", path="/m.gguf", draft="/d.gguf")
    with_draft = sizes(
        spec,
        _model(),
        draft=_model(weights=1_000_000, layers=2),
        ctx_train=8192,
        trimmable=True,
        memory=10_000_000,
        gpu_memory=0,
        cores=4,
    )
    assert with_draft.ctx == 2500  # half of 7 MB, at 1,000 and 400 bytes a token


def test_sizes_without_memory_left_still_offers_the_least() -> None:
    assert _sizes(_model(weights=20_000_000)).ctx == CELLS


def test_sizes_of_a_model_without_kv_are_its_own_context() -> None:
    assert _sizes(_model(kv=0)).ctx == 8192


def test_sizes_given_values_win() -> None:
    chosen = _sizes(ctx=9_000, parallel=3, threads=1)
    assert (chosen.ctx, chosen.parallel, chosen.threads) == (9_000, 3, 1)
    assert _sizes().threads == 4


def test_sizes_context_that_cannot_fit_is_refused_with_both_numbers() -> None:
    with pytest.raises(LlmrunError, match=r"20000000 tokens needs 20\.0 GB .* 0\.0 GB are free") as refusal:
        _sizes(ctx=20_000_000)
    assert refusal.value.kind.exit == 4


def test_sizes_recurrent_model_keeps_few_states() -> None:
    assert _sizes(trimmable=False, parallel=4).slots == 8
    assert _sizes(parallel=4).slots == 20
    assert _sizes(parallel=200).slots == 256


def test_sizes_separate_layout_shares_the_memory_among_those_that_run() -> None:
    unified, apart = _sizes(parallel=4), _sizes(parallel=4, kv_layout="separate")
    assert (unified.unified, unified.slots, unified.ctx) == (True, 20, 4000)
    assert (apart.unified, apart.slots, apart.ctx) == (False, 4, 1000)
    with pytest.raises(LlmrunError, match=r"5000 tokens needs 0\.0 GB"):
        _sizes(parallel=4, kv_layout="separate", ctx=5000)


@pytest.mark.parametrize(
    ("asked", "bounded", "tokens"),
    [(None, True, 512), (256, True, 256), (4096, True, 512), (4096, False, 4096)],
)
def test_longest_input_is_what_is_asked_as_far_as_the_model_goes(
    asked: int | None, bounded: bool, tokens: int
) -> None:
    assert longest_input(asked, 512, bounded=bounded) == tokens
