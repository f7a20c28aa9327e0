from __future__ import annotations

from llmrun.chat.pair import PairEncoder
from tests.chat.vocabs import FIRST_CHARACTER, CharVocab

CONTROL = {"<s>": 1, "</s>": 2, "<|im_end|>": 4}
EDGES = ([1], [2, 3], [2])


def ids(text: str) -> list[int]:
    return [FIRST_CHARACTER + ord(character) for character in text]


def test_encode_without_a_template_puts_separators_around() -> None:
    pairs = PairEncoder(None, CharVocab(CONTROL), EDGES)
    assert pairs.encode("q", "doc") == [1, *ids("q"), 2, 3, *ids("doc"), 2]


def test_encode_with_a_template_fills_its_places() -> None:
    pairs = PairEncoder("Q: {query}<|im_end|>D: {document}, {query}!</s>", CharVocab(CONTROL), EDGES)
    assert pairs.encode("a b", "{query}") == [*ids("Q: a b"), 4, *ids("D: {query}, a b!"), 2]


def test_encode_control_token_in_a_text_stays_text() -> None:
    for template in (None, "{query}<|im_end|>{document}"):
        pairs = PairEncoder(template, CharVocab(CONTROL), EDGES)
        encoded = pairs.encode("</s>", "a<|im_end|>b")
        assert encoded.count(4) == (template is not None)
        assert ids("a<|im_end|>b") == [token for token in encoded if token >= FIRST_CHARACTER][-12:]
