from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from llmrun.errors import LlmrunError
from llmrun.llama import Model
from tests.support.models import tiny_context, tiny_model
from tests.support.tiny import CHATML, CONTROL, Shape


def test_model_of_a_tiny_file_tells_what_it_is(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    assert (model.ctx_train, model.vocab.size) == (512, 266)
    assert model.chat_template == CHATML
    assert model.trimmable
    assert model.unservable is None
    model.close()


def test_model_progress_ends_at_one(tmp_path: Path) -> None:
    told: list[float] = []
    tiny_model(tmp_path).close()
    Model(tmp_path / "tiny.gguf", on_progress=told.append).close()
    assert told[-1] == 1.0


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\x00\x00\x00" + bytes(64)])
def test_model_of_a_broken_file_is_refused_with_its_path(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "broken.gguf"
    path.write_bytes(content)
    with pytest.raises(LlmrunError, match=r"cannot load .*broken\.gguf") as refusal:
        Model(path)
    assert refusal.value.kind.code == "model_load_failed"


def test_close_model_before_its_context_and_twice_is_harmless(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    context = tiny_context(model)
    model.close()
    context.close()
    model.close()


def test_interpreter_exit_with_everything_open_is_clean(tmp_path: Path) -> None:
    tiny_model(tmp_path, Shape()).close()
    program = (
        "from pathlib import Path; from llmrun.llama import *\n"
        f"model = Model(Path({str(tmp_path / 'tiny.gguf')!r}))\n"
        "context = Context(model, ContextSettings(ctx=256, batch=32, slots=2, threads=1, threads_batch=1))\n"
        "print('open', end='')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=60)
    assert (ended.returncode, ended.stdout) == (0, "open")


def test_context_refused_says_llama_cpps_reason(tmp_path: Path) -> None:
    model = tiny_model(tmp_path, Shape(heads=4, kv_heads=2))
    with pytest.raises(LlmrunError, match="block size 32 does not divide"):
        tiny_context(model, kv_type="q8_0")
    model.close()


def test_vocab_control_tokens_are_all_and_only_those(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    assert model.vocab.control_tokens() == CONTROL
    assert model.vocab.eog_tokens == {2, 4}
    model.close()


def test_vocab_tokenize_control_spelling_parses_only_when_asked(tmp_path: Path) -> None:
    vocab = (model := tiny_model(tmp_path)).vocab
    assert vocab.tokenize("<|im_end|>", special=True) == [4]
    plain = vocab.tokenize("<|im_end|>", special=False)
    assert 4 not in plain
    assert vocab.detokenize(plain).strip() == b"<|im_end|>"
    model.close()


def test_vocab_tokenize_half_a_surrogate_pair_is_refused(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    with pytest.raises(LlmrunError, match="surrogate"):
        model.vocab.tokenize("\ud800", special=False)
    model.close()


def test_vocab_piece_of_a_control_token_is_empty(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    assert model.vocab.piece(3) == b""
    assert model.vocab.detokenize([3]) == b"<|im_start|>"
    model.close()


@pytest.mark.parametrize(("shape", "fim"), [(Shape(fim=True), (263, 264, 265)), (Shape(), None)])
def test_vocab_fill_in_the_middle_tokens_are_those_that_the_file_names(
    tmp_path: Path, shape: Shape, fim: tuple[int, ...] | None
) -> None:
    model = tiny_model(tmp_path, shape)
    assert model.vocab.fim == fim
    model.close()
