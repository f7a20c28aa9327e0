from __future__ import annotations

from pathlib import Path

import pytest
from llguidance import LLMatcher

from llmrun.engine.constraint import Constraint
from llmrun.llama import guide_tokenizer
from tests.support.models import tiny_model
from tests.support.tiny import CONTROL


def test_guide_tokenizer_lets_no_grammar_write_a_token_that_is_no_text(tmp_path: Path) -> None:
    model = tiny_model(tmp_path)
    tokenizer = guide_tokenizer(model.vocab)
    matcher = LLMatcher(tokenizer, LLMatcher.grammar_from_regex('"[^"]*"'))
    constraint = Constraint(matcher, tokenizer.vocab_size, tokenizer.tokenize_bytes)
    constraint.accept(model.vocab.tokenize('"', special=False)[-1])
    within = set(constraint.allowed().tolist())
    assert within.isdisjoint(CONTROL.values())
    assert set(model.vocab.tokenize("<unk>", special=False)[1:]) <= within
    constraint.accept(model.vocab.tokenize('"', special=False)[-1])
    assert constraint.ended
    model.close()


@pytest.mark.parametrize("text", ["name", " a", "🦙", "</s>", "\n"])
def test_guide_tokenizer_spells_text_without_a_space_in_front(tmp_path: Path, text: str) -> None:
    model = tiny_model(tmp_path)
    ids = guide_tokenizer(model.vocab).tokenize_str(text)
    assert b"".join(map(model.vocab.piece, ids)) == text.encode()
    model.close()
