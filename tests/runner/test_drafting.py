"""The runner's choice of who guesses, with real tiny models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.engine.drafting import DraftModel, Ngrams
from llmrun.errors import LlmrunError
from llmrun.llama import Model
from llmrun.runner.drafting import drafters, load_small
from llmrun.runner.frames import Load
from llmrun.runner.sizing import Sizes
from tests.support.kinds import mamba
from tests.support.models import tiny_context, tiny_model
from tests.support.tiny import Shape, write_llama

SIZES = Sizes(ctx=512, parallel=2, slots=8, threads=1)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Model]:
    loaded = tiny_model(tmp_path)
    yield loaded
    loaded.close()


def _kinds(target: Model, spec: Load) -> list[type]:
    small = load_small(spec, target)
    return [type(one) for one in drafters(spec, tiny_context(target), small, SIZES)]


def test_drafters_follow_the_setting_and_whether_the_model_has_a_draft(target: Model, tmp_path: Path) -> None:
    small = str(write_llama(tmp_path / "small.gguf", Shape(layers=1, seed=3)))
    plain = Load(name="m", path="/m.gguf")
    assert _kinds(target, plain) == [Ngrams]
    for drafting, expected in (("auto", [Ngrams, DraftModel]), ("ngram", [Ngrams]), ("off", [])):
        spec = Load(name="m", path="/m.gguf", draft=small, drafting=drafting)
        assert _kinds(target, spec) == expected


def test_load_small_another_vocabulary_is_refused_with_what_differs(target: Model, tmp_path: Path) -> None:
    other = write_llama(tmp_path / "other.gguf")
    other.write_bytes(other.read_bytes().replace("▁the".encode(), "▁cat".encode()))
    with pytest.raises(LlmrunError, match="cannot draft for m: the vocabularies differ: token 262 is '▁the'"):
        load_small(Load(name="m", path="/m.gguf", draft=str(other)), target)


def test_load_small_recurrent_models_neither_draft_nor_are_drafted_for(target: Model, tmp_path: Path) -> None:
    recurrent = mamba(tmp_path / "recurrent.gguf")
    with pytest.raises(LlmrunError, match="its own memory cannot be cut back"):
        load_small(Load(name="m", path="/m.gguf", draft=str(recurrent)), target)
    model = Model(recurrent)
    with pytest.raises(LlmrunError, match="the model's memory cannot be cut back"):
        load_small(Load(name="m", path="/m.gguf", draft="/d.gguf"), model)
    model.close()
