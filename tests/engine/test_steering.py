"""Steering over a vocabulary of one character a token, some markers, and some tokens that reach over them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pytest

from llmrun.engine import CallPart, ReasoningPart, Steering, Tokens

END, THINK, CLOSE, CALL = 1000, 1001, 1002, 1003
PIECES = {END: b"", THINK: b"<think>", CLOSE: b"</think>", CALL: b"<call>"}
LONG = {2000: b'l>{"', 2001: b"l>no", 2002: b"k>\n\n", 2003: b"k>no", 2004: b"</c>so"}


def piece(token: int) -> bytes:
    return PIECES.get(token) or LONG.get(token) or (b"" if token == END else bytes([token]))


def encode(text: bytes) -> list[int]:
    for token, spelling in PIECES.items():
        if spelling and spelling in text:
            before, _, after = text.partition(spelling)
            return [*encode(before), token, *encode(after)]
    return list(text)


TOKENS = Tokens(piece=piece, encode=encode, ends=lambda token: token == END)


@dataclass
class Literal:
    """A grammar of one text, which lets any of its characters be sampled and forces none."""

    text: bytes
    at: int = 0
    thought = 0
    quiet = False

    def fresh(self) -> Literal:
        return Literal(self.text, self.at)

    def enter(self, text: bytes) -> bool:
        fits = self.text.startswith(text, self.at)
        self.at += len(text) if fits else 0
        return fits

    def forced(self) -> list[int]:
        return []

    def allowed(self) -> npt.NDArray[np.intp]:
        return np.array([self.text[self.at]])

    def replaces(self, _token: int) -> bool:
        return False

    def accept(self, token: int) -> None:
        assert self.enter(piece(token))

    @property
    def ended(self) -> bool:
        return self.at == len(self.text)


class Model:
    """Says what it likes wherever nothing is forced or constrained, as the engine lets it."""

    def __init__(self, steering: Steering, *wishes: bytes | int) -> None:
        self.said: list[int] = []
        self.quiet: list[bool] = []
        wanted = [t for wish in wishes for t in (list(wish) if isinstance(wish, bytes) else [wish])]
        while not steering.ended:
            tokens = steering.forced()
            if not tokens:
                allowed = steering.allowed()
                if allowed is None and not wanted:
                    break
                token = wanted[0] if wanted and (allowed is None or wanted[0] in allowed) else None
                if token is None:
                    assert allowed is not None
                    token = int(allowed[0])
                else:
                    wanted.pop(0)
                if steering.replaces(token):
                    tokens = steering.forced()
                    assert tokens
                else:
                    tokens = [token]
            for token in tokens:
                steering.accept(token)
                self.said.append(token)
                self.quiet.append(steering.quiet)

    @property
    def text(self) -> bytes:
        return b"".join(map(piece, self.said))

    @property
    def open_to_stops(self) -> bytes:
        return b"".join(piece(t) for t, quiet in zip(self.said, self.quiet, strict=True) if not quiet)


def reasoning(**how: object) -> ReasoningPart:
    plain = {"open": b"<think>", "close": b"</think>", "begun": True, "separator": b"\n\n"}
    return ReasoningPart(**{**plain, **how})  # type: ignore[arg-type]


@pytest.mark.parametrize("budget", [0, 1, 3])
def test_budget_closes_reasoning_and_the_answer_follows(budget: int) -> None:
    steering = Steering(TOKENS, reasoning=reasoning(budget=budget))
    assert Model(steering, b"hmmmmm"[:budget], b"Yes").text == b"hmmmmm"[:budget] + b"</think>\n\nYes"
    assert steering.thought == budget + 1  # the marker is a token of the reasoning


def test_budget_counts_only_what_the_model_thinks_after_opening_by_itself() -> None:
    steering = Steering(TOKENS, reasoning=reasoning(begun=False, budget=2))
    assert Model(steering, b"\n", THINK, b"abcdef").text == b"\n<think>ab</think>\n\ncdef"


def test_budget_within_a_marker_completes_it_and_does_not_begin_it_again() -> None:
    steering = Steering(TOKENS, reasoning=reasoning(budget=5))
    assert Model(steering, b"hm</t", b"Yes").text == b"hm</think>\n\nYes"


def test_answer_that_does_not_begin_with_reasoning_has_none() -> None:
    steering = Steering(TOKENS, reasoning=reasoning(begun=False, budget=0))
    model = Model(steering, b"<th is no marker <think>")
    assert (model.text, steering.thought) == (b"<th is no marker <think>", 0)


def test_grammar_governs_only_what_follows_the_reasoning() -> None:
    steering = Steering(TOKENS, reasoning=reasoning(), answer=Literal(b"{}"))
    model = Model(steering, b"so free", CLOSE)
    assert (model.text, steering.thought) == (b"so free</think>\n\n{}", 8)


def test_model_that_ends_while_it_thinks_must_answer_where_a_grammar_wants_it() -> None:
    steering = Steering(TOKENS, reasoning=reasoning(), answer=Literal(b"{}"))
    assert Model(steering, b"so", END).text == b"so</think>\n\n{}"


@pytest.mark.parametrize("token", [2002, 2003])
def test_reasonings_marker_within_a_token_still_begins_the_grammar(token: int) -> None:
    steering = Steering(TOKENS, reasoning=reasoning(), answer=Literal(b"{}"))
    assert Model(steering, b"</thin", token).text == b"</think>\n\n{}"


@pytest.mark.parametrize(("first", "text"), [(THINK, b"<think>ab</think>\n\n{}"), (ord("{"), b"{}")])
def test_answer_with_a_grammar_may_begin_with_reasoning(first: int, text: bytes) -> None:
    steering = Steering(TOKENS, reasoning=reasoning(begun=False), answer=Literal(b"{}"))
    allowed = steering.allowed()
    assert allowed is not None
    assert set(allowed) == {THINK, ord("{")}
    assert steering.forced() == []
    assert Model(steering, first, *([b"ab", CLOSE] if first == THINK else [])).text == text


@pytest.mark.parametrize("begun", [True, False])
def test_answer_with_a_grammar_may_be_a_call_instead(begun: bool) -> None:
    part = call(grammar=Literal(b"1"), once=True)
    thinking = reasoning() if begun else None
    steering = Steering(TOKENS, reasoning=thinking, answer=Literal(b"{}"), calls=(part,))
    wishes = [b"hm", CLOSE] if begun else []
    assert Model(steering, *wishes, CALL).text.endswith(b"<call>1")


def test_opener_of_several_tokens_is_completed_once_it_is_begun() -> None:
    part = CallPart(open=b"[call]", grammar=Literal(b"1"), once=True)
    assert Model(Steering(TOKENS, answer=Literal(b"{}"), calls=(part,)), b"[").text == b"[call]1"


def call(**how: object) -> CallPart:
    return CallPart(**{"open": b"<call>", "close": b"</c>", **how})  # type: ignore[arg-type]


def test_grammar_begins_at_the_call_marker_and_text_is_free_again_behind_it() -> None:
    steering = Steering(TOKENS, calls=(call(grammar=Literal(b'{"a"}')),))
    model = Model(steering, b"Well: ", CALL, b" or ", b"<call>")
    assert model.text == b'Well: <call>{"a"} or <call>{"a"}'


def test_only_one_call_ends_the_answer_with_it() -> None:
    steering = Steering(TOKENS, calls=(call(grammar=Literal(b"{}"), once=True),))
    assert Model(steering, b"<call>", b"never").text == b"<call>{}"
    free = Steering(TOKENS, calls=(call(once=True),))
    assert Model(free, b"<call>x</c>", b"never").text == b"<call>x</c>"


def test_token_over_the_end_of_a_marker_is_kept_where_the_grammar_takes_it() -> None:
    assert Model(Steering(TOKENS, calls=(call(grammar=Literal(b'{"a"}')),)), b"<cal", 2000).said == [
        *b"<cal", 2000, *b'a"}',
    ]  # fmt: skip


def test_token_over_the_end_of_a_marker_is_replaced_where_the_grammar_does_not() -> None:
    model = Model(Steering(TOKENS, calls=(call(grammar=Literal(b'{"a"}')),)), b"<cal", 2001, b"!")
    assert model.text == b'<call>{"a"}!'


def test_several_markers_each_begin_their_own_grammar() -> None:
    calls = (call(open=b"<call>", grammar=Literal(b"1")), call(open=b"<call>x=", grammar=Literal(b"2")))
    assert Model(Steering(TOKENS, calls=calls[::-1]), b"a<call>").text == b"a<call>1"


def test_stop_strings_are_looked_for_only_in_what_a_reader_sees() -> None:
    steering = Steering(TOKENS, reasoning=reasoning(), calls=(call(),))
    model = Model(steering, b"thought", CLOSE, b"\n\nShown ", CALL, b"args", 2004, b"me")
    assert model.open_to_stops == b"Shown </c>some"
