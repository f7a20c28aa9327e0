from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.chat.control import ControlTokens
from llmrun.chat.mark import Mark
from llmrun.errors import INVALID_REQUEST, LlmrunError
from tests.chat.vocabs import CharVocab

CONTROL = ControlTokens(CharVocab({"<|end|>": 1, "</s>": 2, "[INST]": 3}), ["<|", "\n"])
PIECES = st.sampled_from(["<|end|>", "</s>", "[INST]", "<", "|", "end|>", "[", " ", "\n", "a", "é", "𝌀"])
TEXTS = st.lists(PIECES, max_size=6).map("".join)
DATA = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


@given(DATA)
def test_clean_undoes_outside(data: Any) -> None:
    mark = Mark(CONTROL, data)
    assert mark.clean(mark.outside(data)) == data


@given(TEXTS, TEXTS)
def test_no_control_token_stands_in_marked_text_or_where_two_meet(left: str, right: str) -> None:
    mark = Mark(CONTROL, [left, right])
    joined = mark.outside(left) + mark.outside(right)
    assert list(CONTROL.find(joined)) == []
    assert list(CONTROL.find("<|" + joined)) == []


@given(TEXTS)
def test_mark_is_a_character_that_the_request_does_not_use(text: str) -> None:
    assert Mark(CONTROL, {"content": [text]}).sign not in text


def test_mark_avoids_keys_and_the_templates_words_too() -> None:
    first = Mark(CONTROL, "").sign
    second = Mark(CONTROL, {first: "x"}).sign
    assert len({first, second, Mark(CONTROL, second, [first]).sign}) == 3


def test_mark_where_every_sign_is_used_refuses_the_request() -> None:
    text = "".join(map(chr, [*range(0x1D300, 0x1F100), *range(0xF0000, 0xFFFFF)]))
    with pytest.raises(LlmrunError) as caught:
        Mark(CONTROL, text)
    assert caught.value.kind is INVALID_REQUEST


def test_outside_marks_every_lead_and_what_completes_a_token() -> None:
    mark = Mark(CONTROL, "")
    sign = mark.sign
    assert mark.outside("a<b [c") == f"a<{sign}b [{sign}c"
    assert mark.outside("  end|>") == f"  {sign}end|>"
    assert mark.outside("en") == f"{sign}en"
    assert mark.outside("entry") == "entry"


def test_outside_leaves_known_roles_and_known_keys() -> None:
    mark = Mark(CONTROL, "", known={"end", "<|end|>"})
    assert mark.outside({"role": "user", "end": 1}) == {"role": "user", "end": 1}
    assert mark.outside({"role": "end"}) == {"role": f"{mark.sign}end"}
    assert mark.outside({"<|end|>": 1}) == {f"<{mark.sign}|end|>": 1}
