from __future__ import annotations

import gc
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from llmrun.llama import Batch, Context, DecodeStatus, Model, SamplerChain
from llmrun.types import SamplingParams
from tests.support.models import tiny_context, tiny_model

IDS = np.arange(20, 40, dtype=np.int32)


@pytest.fixture
def model(tmp_path: Path) -> Iterator[Model]:
    loaded = tiny_model(tmp_path)
    yield loaded
    loaded.close()


def _decode(context: Context, ids: np.ndarray, start: int, slot: int) -> np.ndarray:
    batch = Batch(64)
    row = batch.add(ids, start, slot, outputs=1)
    assert context.decode(batch) is DecodeStatus.OK
    return context.logits(row).copy()


def test_decode_in_two_parts_gives_the_logits_of_one(model: Model) -> None:
    context = tiny_context(model)
    whole = _decode(context, IDS, 0, 0)
    _decode(context, IDS[:13], 0, 1)
    np.testing.assert_allclose(_decode(context, IDS[13:], 13, 1), whole, atol=1e-3)


def test_decode_with_more_slots_than_a_batch_has_rows_computes(model: Model) -> None:
    wide, narrow = tiny_context(model), tiny_context(model, slots=8, batch=4)
    np.testing.assert_allclose(_decode(narrow, IDS[:4], 0, 7), _decode(wide, IDS[:4], 0, 7), atol=1e-3)


def test_logits_are_those_of_the_newest_step_however_many_rows_it_has(model: Model) -> None:
    context = tiny_context(model)
    one = _decode(context, IDS, 0, 0)
    batch = Batch(64)
    first = batch.add(IDS, 0, 1, outputs=20)  # llama.cpp gets other memory for so many
    assert context.decode(batch) is DecodeStatus.OK
    np.testing.assert_allclose(context.logits(first + 19), one, atol=1e-3)
    kept = [context.logits(first + at) for at in range(20)]
    assert len({row.tobytes() for row in kept}) == 20
    again = _decode(context, IDS, 0, 2)
    np.testing.assert_allclose(again, one, atol=1e-3)


def test_decode_rows_of_two_sequences_do_not_mix(model: Model) -> None:
    context = tiny_context(model)
    first, second = _decode(context, IDS, 0, 0), _decode(context, IDS[::-1].copy(), 0, 1)
    batch = Batch(64)
    rows = [batch.add(IDS, 0, 2, outputs=1), batch.add(IDS[::-1].copy(), 0, 3, outputs=1)]
    assert context.decode(batch) is DecodeStatus.OK
    np.testing.assert_allclose(context.logits(rows[0]), first, atol=1e-3)
    np.testing.assert_allclose(context.logits(rows[1]), second, atol=1e-3)


def test_share_then_go_on_gives_the_logits_of_an_own_computation(model: Model) -> None:
    context = tiny_context(model)
    whole = _decode(context, IDS, 0, 0)
    context.share(0, 1, 12)
    assert context.length(1) == 12
    np.testing.assert_allclose(_decode(context, IDS[12:], 12, 1), whole, atol=1e-3)
    context.drop(1)
    assert (context.length(0), context.length(1)) == (20, 0)


def test_restore_into_another_slot_gives_the_same_logits(model: Model) -> None:
    context = tiny_context(model)
    whole = _decode(context, IDS, 0, 0)
    _decode(context, IDS[:-1], 0, 1)
    state = context.save(1)
    context.drop(1)
    assert context.restore(5, state)
    np.testing.assert_allclose(_decode(context, IDS[-1:], 19, 5), whole, atol=1e-3)


def test_save_and_restore_leave_nothing_to_the_garbage_collector(model: Model) -> None:
    """States are megabytes, and the collector seldom runs."""
    context = tiny_context(model)
    _decode(context, IDS, 0, 0)
    size = len(context.save(0))
    gc.collect()
    gc.disable()
    tracemalloc.start()
    try:
        for _ in range(20):
            context.drop(1)
            assert context.restore(1, context.save(0))
        assert tracemalloc.get_traced_memory()[0] < 2 * size + 20_000
    finally:
        tracemalloc.stop()
        gc.enable()


def test_restore_of_a_damaged_state_is_false(model: Model) -> None:
    context = tiny_context(model)
    _decode(context, IDS, 0, 0)
    assert not context.restore(1, context.save(0)[:40])


def test_share_where_each_slot_has_its_cells_is_a_copy_that_outlives_the_source(model: Model) -> None:
    context = tiny_context(model, ctx=256, slots=3, unified=False)
    assert (context.ctx, context.cells) == (256, 768)
    whole = _decode(context, IDS, 0, 0)
    context.share(0, 2, 12)
    assert (context.length(0), context.length(2)) == (20, 12)
    context.drop(0)
    _decode(context, IDS[::-1].copy(), 0, 0)
    np.testing.assert_allclose(_decode(context, IDS[12:], 12, 2), whole, atol=1e-3)


def test_decode_without_flash_attention_gives_the_same_logits(model: Model) -> None:
    logits = [_decode(tiny_context(model, flash_attention=flash), IDS, 0, 0) for flash in (True, False)]
    np.testing.assert_allclose(*logits, atol=1e-2)


def test_restore_of_what_was_saved_with_another_attention_is_false(model: Model) -> None:
    flash, plain = tiny_context(model, flash_attention=True), tiny_context(model, flash_attention=False)
    _decode(flash, IDS, 0, 0)
    assert not plain.restore(0, flash.save(0))


@pytest.mark.parametrize(("kv_type", "share"), [("f32", 2.0), ("bf16", 1.0), ("q8_0", 34 / 64)])
def test_kv_type_is_that_of_the_cells(model: Model, kv_type: str, share: float) -> None:
    sizes = []
    for one in ("f16", kv_type):
        context = tiny_context(model, kv_type=one)
        _decode(context, np.tile(IDS, 3), 0, 0)
        sizes.append(len(context.save(0)))
    assert sizes[1] / sizes[0] == pytest.approx(share, rel=0.05)


def test_trim_forgets_the_end(model: Model) -> None:
    context = tiny_context(model)
    _decode(context, IDS, 0, 0)
    assert context.trim(0, 7)
    assert context.length(0) == 7


def test_decode_more_than_the_cells_is_refused_and_changes_nothing(model: Model) -> None:
    context = tiny_context(model, ctx=256)
    batch = Batch(64)
    for start in range(0, 256, 64):
        batch.clear()
        batch.add(np.full(64, 30, np.int32), start, 0, outputs=0)
        assert context.decode(batch) is DecodeStatus.OK
    batch.clear()
    batch.add(np.full(2, 30, np.int32), 0, 1, outputs=0)
    assert context.decode(batch) is DecodeStatus.NO_SLOT
    assert (context.length(0), context.length(1)) == (256, 0)


def test_decode_with_the_abort_flag_set_stops_and_goes_on_once_cleared(
    model: Model, caplog: pytest.LogCaptureFixture
) -> None:
    context = tiny_context(model)
    batch = Batch(64)
    batch.add(IDS, 0, 0, outputs=1)
    context.abort.set()
    assert context.decode(batch) is DecodeStatus.ABORTED
    context.abort.clear()
    context.drop(0)
    assert context.decode(batch) is DecodeStatus.OK
    assert not caplog.records  # stopping on purpose is no error


def test_batch_over_its_capacity_raises() -> None:
    batch = Batch(4)
    with pytest.raises(ValueError, match="5 rows in a batch of 4"):
        batch.add(IDS[:5], 0, 0, outputs=0)


def _most_likely(context: Context) -> int:
    return int(_decode(context, IDS, 0, 0).argmax())


def _sampled(model: Model, params: SamplingParams, seed: int = 1) -> int:
    context = tiny_context(model)
    _decode(context, IDS, 0, 0)
    chain = SamplerChain(model.vocab, params, seed=seed, ctx=context.ctx, history=IDS.tolist())
    token = chain.pick(context.logits(len(IDS) - 1))
    chain.close()
    chain.close()
    return token


FLAT = {"top_k": 0, "top_p": 1.0, "min_p": 0.0, "temperature": 100.0}


@pytest.mark.parametrize(
    "narrowing",
    [{"temperature": 0.0}, {"top_k": 1}, {"top_p": 1e-6}, {"min_p": 1.0}, {"temperature": 1e-3}],
)
def test_sample_narrowed_to_one_token_takes_the_likeliest(model: Model, narrowing: dict[str, float]) -> None:
    params = SamplingParams(**{**FLAT, **narrowing})
    assert _sampled(model, params) == _most_likely(tiny_context(model))


def test_sample_hot_with_other_seeds_takes_other_tokens(model: Model) -> None:
    assert len({_sampled(model, SamplingParams(**FLAT), seed) for seed in range(12)}) > 3


def test_sample_logit_bias_decides(model: Model) -> None:
    assert _sampled(model, SamplingParams(temperature=0, logit_bias={77: 1000.0})) == 77


def test_sample_frequency_penalty_moves_off_a_token_of_the_prompt(model: Model) -> None:
    forced = {int(IDS[3]): 50.0, 200: 40.0}
    assert _sampled(model, SamplingParams(temperature=0, logit_bias=forced)) == IDS[3]
    punished = SamplingParams(temperature=0, logit_bias=forced, frequency_penalty=30.0)
    assert _sampled(model, punished) == 200


def test_sample_repeat_last_n_without_bound_does_not_eat_the_memory(model: Model) -> None:
    for last_n in (-1, 2**31 - 1):
        _sampled(model, SamplingParams(temperature=0, repeat_penalty=1.1, repeat_last_n=last_n))
