from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from llmrun.store.anatomy import Anatomy, anatomy
from llmrun.store.ggml import TENSOR_TYPES
from llmrun.store.gguf import Tensor, read_header
from llmrun.store.hardware import Machine
from llmrun.store.kernels import repacks
from llmrun.store.plan import (
    CELLS,
    PROCESS,
    RELEASE_STEP,
    Company,
    decode_speed,
    embedding_bytes,
    largest_context,
    plan,
    streams,
)
from tests.support import kinds
from tests.support.tiny import Shape, write_llama

GB = 1 << 30
PLAIN = Machine(available=8 * GB, total=16 * GB, features=frozenset(), bandwidth=1e10)
TYPES = {kind.name: kind for kind in TENSOR_TYPES.values()}


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Anatomy:
    shape = Shape(embd=256, layers=4, heads=8, kv_heads=4, ff=512)
    return anatomy([read_header(write_llama(tmp_path_factory.mktemp("plan") / "a.gguf", shape))])


def test_plan_adds_up(model: Anatomy) -> None:
    one = plan(model, PLAIN, 4096, "f16")
    assert one.mapped == model.weights
    assert one.repacked == one.gpu == one.gpu_layers == 0
    assert one.caches == model.kv_bytes(4096, "f16")
    assert one.peak == one.held == one.mapped + one.caches + one.compute + one.runtime


def _quantised(model: Anatomy, kind: str) -> Anatomy:
    tensors = tuple(tensor._replace(type=TYPES[kind]) for tensor in model.tensors)
    return replace(model, tensors=tensors)


def test_plan_weights_that_are_repacked_count_twice_only_while_they_load(model: Anatomy) -> None:
    machine = replace(PLAIN, features=frozenset({"avx2"}))
    one, plain = (plan(_quantised(model, "Q4_0"), each, 1024, "f16") for each in (machine, PLAIN))
    assert one.returned == one.repacked > one.mapped // 2
    assert one.peak == plain.peak
    small = replace(one, caches=0, compute=0)
    assert small.peak == one.mapped + int(RELEASE_STEP * one.repacked) + one.runtime
    assert small.held == one.mapped + one.runtime


def test_plan_embedding_that_is_the_output_too_stays_beside_its_copy(model: Anatomy) -> None:
    embedding = Tensor("token_embd.weight", (256, 256), TYPES["Q4_0"], 0, 1000)
    named = ("token_embd.weight", "output.weight")
    others = [tensor for tensor in _quantised(model, "Q4_0").tensors if tensor.name not in named]
    tied = replace(model, tensors=(embedding, *others))
    one = plan(tied, replace(PLAIN, features=frozenset({"avx2"})), 1024, "f16")
    assert one.repacked == one.returned + embedding.size


def test_plan_quantised_caches_are_smaller_and_longer_contexts_larger(model: Anatomy) -> None:
    peaks = [plan(model, PLAIN, 4096, kind).peak for kind in ("q4_0", "q8_0", "f16", "f32")]
    assert peaks == sorted(peaks)
    assert plan(model, PLAIN, 8192, "f16").peak > plan(model, PLAIN, 4096, "f16").peak


def test_streams_are_one_for_each_that_may_run_where_the_layout_is_separate(model: Anatomy) -> None:
    recurrent = replace(model, layers=(replace(model.layers[0], state=64),))
    asked = [(model, "unified"), (model, "separate"), (recurrent, "separate")]
    assert [streams(one, layout, 3) for one, layout in asked] == [1, 3, 1]
    assert plan(model, PLAIN, 4096, "f16", streams=3).caches == 3 * model.kv_bytes(4096, "f16")


def test_plan_fits_as_long_as_memory_is_available(model: Anatomy) -> None:
    one = plan(model, PLAIN, 4096, "f16")
    assert one.fits(replace(PLAIN, available=one.held))
    assert not one.fits(replace(PLAIN, available=one.held - 1))


def test_plan_large_gpu_takes_all_layers_and_their_caches(model: Anatomy) -> None:
    one = plan(model, replace(PLAIN, gpu_memory=4 * GB), 4096, "f16")
    assert one.gpu_layers == one.layers == 5
    assert one.caches == 0
    embedding = next(t.size for t in model.tensors if t.name == "token_embd.weight")
    assert one.mapped == embedding
    assert one.gpu >= model.weights - embedding + model.kv_bytes(4096, "f16") - 4096


def test_plan_small_gpu_takes_the_last_layers(model: Anatomy) -> None:
    host = plan(model, PLAIN, 4096, "f16")
    layer = model.layers[0].weights + model.kv_bytes(4096, "f16") // 4
    output = next(t.size for t in model.tensors if t.name == "output.weight")
    compute = plan(model, replace(PLAIN, gpu_memory=1), 4096, "f16").compute  # its attention is another
    room = compute + output + 2 * layer + layer // 2
    one = plan(model, replace(PLAIN, gpu_memory=int(room / 0.9)), 4096, "f16")
    assert one.gpu_layers == 3
    assert one.caches == host.caches // 2
    assert one.held < host.held


def test_plan_encoder_computes_a_whole_input_and_keeps_none(tmp_path: Path) -> None:
    encoder = anatomy([read_header(kinds.EMBEDDERS["encoder, mean"](tmp_path / "bert.gguf"))])
    short, long = (plan(encoder, PLAIN, ctx, "f16") for ctx in (256, 512))
    assert short.caches == long.caches == 0
    activations = 4 * (2 * kinds.FF + 6 * kinds.EMBD) + 4 * encoder.vocab
    assert long.compute == 512 * activations + 512 * 512 * 6
    assert short.compute < long.compute
    assert decode_speed(encoder, PLAIN, "f16", 100) is None


def test_embedding_bytes_of_the_last_row_alone_have_one_row_of_logits(model: Anatomy) -> None:
    whole, last = (embedding_bytes(model, 4096, last_row=last_row) for last_row in (False, True))
    row = 4 * (2 * model.ff + 6 * model.embd) + 4096 * 6
    assert last == 512 * row + 4 * model.vocab + model.kv_bytes(4096, "f16")
    assert whole == 4096 * (row + 4 * model.vocab) + model.kv_bytes(4096, "f16")


def test_largest_context_is_the_last_that_fits(model: Anatomy) -> None:
    for available in (300 << 20, 1 * GB):
        machine = replace(PLAIN, available=available)
        most = largest_context(model, machine, "f16", 1 << 20)
        assert 0 < most < 1 << 20
        assert plan(model, machine, most, "f16").fits(machine)
        assert not plan(model, machine, most + CELLS, "f16").fits(machine)
    assert largest_context(model, PLAIN, "f16", 512) == 512
    assert largest_context(model, replace(PLAIN, available=1), "f16", 512) == 0


def test_decode_speed_falls_with_what_must_be_read(model: Anatomy) -> None:
    short, long = (decode_speed(model, PLAIN, "f16", said) for said in (0, 100_000))
    assert short is not None
    assert long is not None
    assert long < short
    assert decode_speed(model, replace(PLAIN, bandwidth=None), "f16", 0) is None
    assert decode_speed(model, replace(PLAIN, gpu_memory=GB), "f16", 0) is None


@pytest.mark.parametrize(
    ("name", "kind", "rows", "features", "yes"),
    [
        ("blk.0.ffn_up.weight", "Q4_0", 64, {"avx2"}, True),
        ("blk.0.ffn_up.weight", "Q4_0", 63, {"avx2"}, False),
        ("blk.0.ffn_up.weight", "Q4_0", 64, set(), False),
        ("blk.0.ffn_up.weight", "Q8_0", 64, {"avx2", "avx512"}, False),
        ("blk.0.ffn_up.weight", "Q8_0", 64, {"dotprod"}, True),
        ("blk.0.ffn_up.weight", "Q2_K", 64, {"avx2"}, False),
        ("blk.0.ffn_up.weight", "Q2_K", 64, {"avx2", "avx512"}, True),
        ("token_embd.weight", "Q4_0", 64, {"avx2"}, False),
    ],
)
def test_repacks_as_llama_cpp_does(name: str, kind: str, rows: int, features: set[str], yes: bool) -> None:
    assert repacks(Tensor(name, (256, rows), TYPES[kind], 0, 0), features) is yes


def test_repacks_an_embedding_that_serves_as_output() -> None:
    embedding = Tensor("token_embd.weight", (256, 64), TYPES["Q4_0"], 0, 0)
    other = embedding._replace(name="blk.0.ffn_up.weight")
    assert repacks(embedding, {"avx2"}, as_output=True)
    assert not repacks(other, {"avx2"}, as_output=True)


def test_plan_counts_adapters_and_the_whole_of_a_draft(model: Anatomy) -> None:
    alone = plan(model, PLAIN, 1024, "f16")
    with_adapter = plan(model, PLAIN, 1024, "f16", Company(adapters=1000))
    assert (with_adapter.peak, with_adapter.held) == (alone.peak + 1000, alone.held + 1000)
    drafted = plan(model, PLAIN, 1024, "f16", Company(draft=model))
    assert drafted.beside == alone.peak - PROCESS
    assert drafted.caches == alone.caches
    room = replace(PLAIN, available=drafted.held - 1)
    assert alone.fits(room)
    assert not drafted.fits(room)
    assert largest_context(model, room, "f16", 1024, Company(draft=model)) < 1024
