from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest

from llmrun.api.ollama import models
from llmrun.api.ollama.models import digest, parameter_size, running, show, tags
from llmrun.store import GGUFHeader, parse_modelfile
from llmrun.store.ggml import TENSOR_TYPES
from llmrun.store.gguf import LongArray, Tensor
from llmrun.types import Options
from tests.api.openai.test_models import stored
from tests.api.test_control import running as loaded

NOW = datetime(2026, 3, 1, tzinfo=timezone.utc)
SHA = "ab" * 32
MODEL = replace(stored("tiny:1m"), sha256=SHA)
DETAILS = {
    "parent_model": "",
    "format": "gguf",
    "family": "llama",
    "families": ["llama"],
    "parameter_size": "1M",
    "quantization_level": "Q4_0",
}
HEADER = GGUFHeader(
    version=3,
    metadata={
        "general.architecture": "llama",
        "general.name": "Tiny",
        "llama.context_length": 8192,
        "llama.layers": (1, 2, 3),
        "llama.widths": tuple(range(9)),
        "tokenizer.chat_template": "{{ messages }}",
        "tokenizer.ggml.tokens": LongArray(8, 49152, 100),
    },
    tensors=(Tensor("token_embd.weight", (64, 100), TENSOR_TYPES[0], 0, 25600),),
    data_offset=4096,
)


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (134_515_008, "134.52M"),
        (1_000_000, "1M"),
        (8_030_261_248, "8.0B"),
        (7_000_000_000, "7B"),
        (4_500, "4K"),
        (12, "12"),
    ],
)
def test_parameter_size_reads_as_ollamas(count: int, text: str) -> None:
    assert parameter_size(count) == text


def test_tags_golden() -> None:
    older = replace(MODEL, name="old", modified=datetime(2025, 1, 2, tzinfo=timezone.utc))
    assert tags([older, MODEL])["models"] == [
        {
            "name": name,
            "model": name,
            "modified_at": modified,
            "size": 4_000,
            "digest": SHA,
            "details": DETAILS,
        }
        for name, modified in (("tiny:1m", "2026-01-02T00:00:00Z"), ("old", "2025-01-02T00:00:00Z"))
    ]


def test_digest_of_a_file_that_nobody_hashed_is_stable_and_its_own() -> None:
    plain = replace(MODEL, sha256=None)
    assert digest(plain) == digest(replace(plain, name="other"))
    assert len(digest(plain)) == 64
    assert digest(plain) != digest(replace(plain, size=5))


def test_running_golden() -> None:
    idle = replace(loaded(), expires_at=NOW.timestamp() + 60)
    assert running(idle, MODEL, NOW) == {
        "name": "tiny:1m",
        "model": "tiny:1m",
        "size": 4_512,
        "digest": SHA,
        "details": DETAILS,
        "expires_at": "2026-03-01T00:01:00Z",
        "size_vram": 0,
        "context_length": 2048,
    }


def test_running_in_use_expires_as_if_idle_from_now_on() -> None:
    assert running(replace(loaded(), keep_alive=300.0), MODEL, NOW)["expires_at"] == "2026-03-01T00:05:00Z"


def test_running_for_ever_has_a_time_far_away_that_dates_can_hold() -> None:
    text = running(loaded(), MODEL, NOW)["expires_at"]
    assert isinstance(text, str)
    assert datetime.fromisoformat(text.replace("Z", "+00:00")) - NOW > timedelta(days=365 * 250)


def test_running_model_that_was_removed_is_listed_still() -> None:
    assert running(loaded(), None, NOW)["size"] == 4_512


def test_show_golden() -> None:
    model = replace(
        MODEL, options=Options(temperature=0.7, ctx=2048, max_tokens=9, stop=('say "x"',)), system="Be brief."
    )
    assert show(model, HEADER, verbose=False) == {
        "license": "mit",
        "modelfile": models.modelfile(model),
        "parameters": (
            "temperature                    0.7\n"
            "num_predict                    9\n"
            "num_ctx                        2048\n"
            'stop                           "say \\"x\\""'
        ),
        "template": "{{ messages }}",
        "details": DETAILS,
        "model_info": {
            "general.architecture": "llama",
            "llama.context_length": 8192,
            "llama.layers": [1, 2, 3],
            "llama.widths": [],
            "tokenizer.ggml.tokens": [],
            "general.parameter_count": 1_000_000,
        },
        "capabilities": ["completion", "tools"],
        "modified_at": "2026-01-02T00:00:00Z",
        "system": "Be brief.",
    }


def test_show_verbose_adds_tensors_and_arrays() -> None:
    shown = show(MODEL, HEADER, verbose=True)
    assert shown["tensors"] == [{"name": "token_embd.weight", "type": "F32", "shape": [64, 100]}]
    info = shown["model_info"]
    assert isinstance(info, dict)
    assert info["llama.widths"] == list(range(9))


def test_show_modelfile_makes_the_same_model() -> None:
    model = replace(MODEL, options=Options(temperature=0.7, stop=("x",)), system="Be brief.")
    described = parse_modelfile(models.modelfile(model))
    assert (described.options, described.system, described.sha256) == (model.options, model.system, SHA)


def test_show_model_that_fills_in_the_middle_says_so() -> None:
    header = replace(HEADER, metadata={**HEADER.metadata, "tokenizer.ggml.fim_mid_token_id": 7})
    assert show(MODEL, header, verbose=False)["capabilities"] == ["completion", "tools", "insert"]


def test_show_model_that_thinks_says_so() -> None:
    thinker = replace(MODEL, template="{% if enable_thinking %}<think>{% endif %}")
    assert show(thinker, HEADER, verbose=False)["capabilities"] == ["completion", "tools", "thinking"]


def test_show_model_without_a_template_takes_no_tools() -> None:
    assert show(replace(MODEL, kind="completion"), HEADER, verbose=False)["capabilities"] == ["completion"]


def test_show_embedding_model_says_so() -> None:
    assert show(replace(MODEL, kind="embedding"), HEADER, verbose=False)["capabilities"] == ["embedding"]
