from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

import pytest

from llmrun.store.adapters import adapter_fault
from llmrun.store.gguf import GGUFHeader, Tensor, read_header
from tests.support.tiny import Shape, write_llama, write_lora

Change = Callable[[GGUFHeader], GGUFHeader]


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> GGUFHeader:
    return read_header(write_llama(tmp_path_factory.mktemp("m") / "m.gguf"))


@pytest.fixture(scope="module")
def lora(tmp_path_factory: pytest.TempPathFactory) -> GGUFHeader:
    return read_header(write_lora(tmp_path_factory.mktemp("l") / "l.gguf"))


def told(key: str, value: object) -> Change:
    return lambda header: dataclasses.replace(header, metadata={**header.metadata, key: value})


def tensors(change: Callable[[list[Tensor]], list[Tensor]]) -> Change:
    return lambda header: dataclasses.replace(header, tensors=tuple(change(list(header.tensors))))


def test_adapter_of_the_model_has_no_fault(base: GGUFHeader, lora: GGUFHeader) -> None:
    assert adapter_fault(lora, [base]) is None
    without_alpha = {key: value for key, value in lora.metadata.items() if "alpha" not in key}
    assert adapter_fault(dataclasses.replace(lora, metadata=without_alpha), [base]) is None
    norms = [*lora.tensors, base.tensors[1]._replace(name="blk.0.attn_norm.weight")]
    assert adapter_fault(dataclasses.replace(lora, tensors=tuple(norms)), [base]) is None


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (told("general.type", "model"), "no adapter"),
        (told("adapter.type", "ia3"), "kind 'ia3'"),
        (told("general.architecture", "qwen2"), "qwen2, and this one is llama"),
        (told("adapter.lora.alpha", float("nan")), "alpha is nan"),
        (told("adapter.lora.alpha", "much"), "alpha is 'much'"),
        (told("adapter.alora.invocation_tokens", (1, 2)), "switch on"),
        (tensors(lambda _: []), "changes no weight"),
        (tensors(lambda all_: all_[1:]), "attn_q.weight.lora_b lacks the other half"),
        (tensors(lambda all_: [all_[0]._replace(name="odd.weight"), *all_]), "odd.weight is no part"),
        (
            tensors(lambda all_: [one._replace(name=one.name.replace("blk.1", "blk.9")) for one in all_]),
            "blk.9.attn_q.weight, which the model does not have",
        ),
        (
            tensors(lambda all_: [one._replace(shape=one.shape[::-1]) for one in all_]),
            "and the model has 64 × 64",
        ),
    ],
)
def test_adapter_that_does_not_fit_has_its_fault_named(
    base: GGUFHeader, lora: GGUFHeader, change: Change, what: str
) -> None:
    fault = adapter_fault(change(lora), [base])
    assert fault
    assert what in fault


def test_adapter_of_another_width_is_told_both_shapes(base: GGUFHeader, tmp_path: Path) -> None:
    wide = read_header(write_lora(tmp_path / "wide.gguf", Shape(embd=128)))
    assert adapter_fault(wide, [base]) == (
        "its blk.0.attn_q.weight is for 128 × 128 weights, and the model has 64 × 64"
    )


def test_adapter_weights_may_lie_in_any_shard(base: GGUFHeader, lora: GGUFHeader) -> None:
    half = len(base.tensors) // 2
    shards = [dataclasses.replace(base, tensors=part) for part in (base.tensors[:half], base.tensors[half:])]
    assert adapter_fault(lora, shards) is None
