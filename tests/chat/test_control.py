from __future__ import annotations

from llmrun.chat.control import ControlTokens
from tests.chat.vocabs import CharVocab


def test_control_tokens_take_in_user_defined_markup_but_no_text() -> None:
    user = {"<|channel|>": 5, "<tool_call>": 6, "<table>": 7, "   ": 8, "ø": 9, "<turn|>": 10, "word": 11}
    control = ControlTokens(CharVocab({"<s>": 1}, user), ["word<tool_call>\n   ø"])
    assert control.ids == {"<s>": 1, "<|channel|>": 5, "<tool_call>": 6, "<turn|>": 10}
    assert control.leads == {"<"}


def test_control_tokens_leave_out_single_characters_and_white_space() -> None:
    assert ControlTokens(CharVocab({"\n": 1, " ": 2, "x": 3, " y": 4, "ab": 5})).ids == {"ab": 5}


def test_find_takes_the_longest_at_each_place() -> None:
    control = ControlTokens(CharVocab({"<a>": 1, "<a><b>": 2, "[X]": 3, "a>": 4}))
    assert list(control.find("<<a><b>[X]<a>a>[X")) == [(1, "<a><b>"), (7, "[X]"), (10, "<a>"), (13, "a>")]


def test_find_without_control_tokens_finds_nothing() -> None:
    assert list(ControlTokens(CharVocab({})).find("<s>")) == []


def test_tails_are_what_completes_a_token_the_template_began() -> None:
    vocab = CharVocab({"<|end|>": 1, "</s>": 2})
    assert set(ControlTokens(vocab, ["<|", "hello"]).tails) == {"end|>"}
    assert set(ControlTokens(vocab, ["x</"]).tails) == {"s>"}
    assert set(ControlTokens(vocab, ["<", "/"]).tails) == {"|end|>", "/s>", "s>"}
    assert ControlTokens(vocab, ["<|end|>", "\n"]).tails == ()
