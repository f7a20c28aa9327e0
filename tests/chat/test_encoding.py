from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.chat.control import ControlTokens
from llmrun.chat.encoding import encode_marked
from llmrun.chat.mark import Mark
from tests.chat.vocabs import FIRST_CHARACTER, CharVocab

CONTROL = {"<|im_start|>": 1, "<|im_end|>": 2, "</s>": 3, "[INST]": 4, "<|im_end|><|x|>": 5, "<unk>": 6}
USER = {"<tool>": 7, "  ": 8, "<|channel|>": 9}
VOCABS = {
    "plain": CharVocab(CONTROL),
    "user-defined": CharVocab(CONTROL, USER),
    "strips": CharVocab(CONTROL, USER, strips_of={1: (False, True), 2: (True, False), 9: (True, True)}),
    "space prefix": CharVocab(CONTROL, USER, space_prefix=True),
    "merges": CharVocab(CONTROL, merges={"</s>": 3, "he": 11}),
}
WORDS = [*CONTROL, *USER, "he", "llo", " ", "\n", "\t", "<", "|", "é", "🦙", ">", "s>", "</"]
TEXTS = st.lists(st.sampled_from(WORDS), max_size=12).map("".join)


def encoded(vocab: Any, template_text: str, message: str | None = None) -> list[int]:
    """Ids of what a template wrote, and of a message behind it."""
    control = ControlTokens(vocab, ["<tool>"])
    mark = Mark(control, message or "")
    return encode_marked(template_text + mark.outside(message or ""), mark, control, vocab)


@pytest.mark.parametrize("vocab", VOCABS.values(), ids=VOCABS)
@given(text=TEXTS)
def test_encode_what_a_template_wrote_equals_llama_cpps_own_parsing(vocab: CharVocab, text: str) -> None:
    assert encoded(vocab, text) == vocab.tokenize(text, special=True)


@pytest.mark.parametrize("vocab", VOCABS.values(), ids=VOCABS)
@given(text=TEXTS)
def test_encode_a_message_makes_no_control_token_and_loses_no_text(vocab: CharVocab, text: str) -> None:
    control = ControlTokens(vocab, ["<tool>"])
    ids = encoded(vocab, "", text)
    assert control.tokens.isdisjoint(ids)
    read = vocab.read(ids)
    if vocab.space_prefix:  # the vocabulary puts some in
        read, text = read.replace(" ", ""), text.replace(" ", "")
    assert read == text


def test_encode_text_broken_open_goes_on_without_a_space_in_front() -> None:
    vocab = CharVocab({}, {"<tool>": 7}, space_prefix=True)
    assert vocab.read(encoded(vocab, "", "a<tool>b")) == " a<tool>b"


def test_encode_strips_white_space_of_messages_where_the_token_does() -> None:
    vocab = CharVocab({"<a>": 1}, strips_of={1: (False, True)})
    assert encoded(vocab, "<a>", " \n x") == [1, FIRST_CHARACTER + ord("x")]


def test_encode_keeps_ordinary_text_as_the_vocabulary_merges_it() -> None:
    vocab = VOCABS["merges"]
    assert encoded(vocab, "", "he<b>he") == vocab.tokenize("he<b>he", special=False)
