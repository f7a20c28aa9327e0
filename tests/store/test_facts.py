from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.facts import facts_of, read_facts, special_tokens
from llmrun.store.gguf import read_header
from llmrun.types import Options
from tests.store.models import header, pair, tensor, text, write_gguf


def test_read_facts_chat_model_is_described(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "a.gguf",
        size=4096,
        text={"tokenizer.chat_template": "{{ x }}", "general.license": "mit"},
        numbers={
            "general.file_type": 15,
            "general.sampling.top_k": 20,
            "general.sampling.penalty_last_n": 32,
        },
        floats={"general.sampling.temp": 0.5, "general.sampling.top_p": 0.75, "general.sampling.min_p": 0.25},
    )
    facts = read_facts([path])
    assert (facts.architecture, facts.quant, facts.parameters) == ("llama", "Q4_K_M", 1024)
    assert (facts.ctx_train, facts.kind, facts.license) == (512, "chat", "mit")
    assert facts.options == Options(temperature=0.5, top_k=20, top_p=0.75, min_p=0.25, repeat_last_n=32)


def test_read_facts_useless_sampling_advice_is_left_out(tmp_path: Path) -> None:
    path = write_gguf(
        tmp_path / "a.gguf",
        floats={"general.sampling.temp": float("nan"), "general.sampling.top_p": 7.0},
        text={"general.sampling.top_k": "many"},
    )
    assert read_facts([path]).options == Options()


def test_read_facts_without_template_it_is_a_completion_model(tmp_path: Path) -> None:
    assert read_facts([write_gguf(tmp_path / "a.gguf")]).kind == "completion"


@pytest.mark.parametrize(
    ("architecture", "pooling", "kind"),
    [
        ("bert", None, "embedding"),
        ("bert", 4, "reranker"),
        ("qwen3", 3, "embedding"),
        ("qwen3", 0, "chat"),
        ("qwen3", None, "chat"),
    ],
)
def test_read_facts_pooling_or_encoder_makes_an_embedding_model(
    tmp_path: Path, architecture: str, pooling: int | None, kind: str
) -> None:
    numbers = {} if pooling is None else {f"{architecture}.pooling_type": pooling}
    path = write_gguf(
        tmp_path / "a.gguf", architecture=architecture, numbers=numbers, text={"tokenizer.chat_template": "x"}
    )
    assert read_facts([path]).kind == kind


def test_facts_of_quant_without_file_type_is_that_of_most_bytes(tmp_path: Path) -> None:
    path = tmp_path / "a.gguf"
    path.write_bytes(
        header(
            pairs=(pair("general.architecture", 8, text("llama")),),
            tensors=(tensor("a", (64,), 0, 0), tensor("b", (32, 100), 2, 256)),
            data=256 + 1800,
        )
    )
    assert facts_of([read_header(path)], path).quant == "Q4_0"


def test_read_facts_shards_count_together(tmp_path: Path) -> None:
    shards = [write_gguf(tmp_path / f"a{i}.gguf", size=4096) for i in range(3)]
    assert read_facts(shards).parameters == 3 * 1024


@pytest.mark.parametrize(
    ("options", "what"),
    [
        ({"architecture": "clip"}, "vision projector"),
        ({"text": {"general.type": "adapter"}}, "adapter"),
        ({"architecture": ""}, "no architecture"),
    ],
)
def test_read_facts_file_that_is_no_model_is_refused(
    tmp_path: Path, options: dict[str, object], what: str
) -> None:
    path = write_gguf(tmp_path / "a.gguf", **options)  # type: ignore[arg-type]
    with pytest.raises(LlmrunError, match=what) as caught:
        read_facts([path])
    assert caught.value.kind is BAD_FILE


@pytest.mark.parametrize("count", [10, 5000])
def test_special_tokens_are_the_texts_of_the_ids(tmp_path: Path, count: int) -> None:
    path = write_gguf(
        tmp_path / "a.gguf",
        tokens=[f"<{i}>" for i in range(count)],
        numbers={"tokenizer.ggml.bos_token_id": 3, "tokenizer.ggml.eos_token_id": count + 5},
    )
    assert special_tokens(path, read_header(path)) == {"bos_token": "<3>"}
