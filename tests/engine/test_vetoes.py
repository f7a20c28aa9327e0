from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.vetoes import BannedStrings, Spellings, Vetoes
from llmrun.errors import LlmrunError

PIECES = [b"", b"a", b"b", b"c", b"ab", b"bc", b"abc", b"ca", b"bb"]
END = 0


class Scripted:
    """A guide that allows and forces what it is told."""

    thought, quiet, ended = 3, True, False

    def __init__(self, allowed: list[int] | None = None, forced: list[int] | None = None) -> None:
        self._allowed, self._forced = allowed, forced or []
        self.accepted: list[int] = []

    def forced(self) -> list[int]:
        return self._forced

    def allowed(self) -> np.ndarray | None:
        return None if self._allowed is None else np.array(self._allowed)

    def replaces(self, token: int) -> bool:
        return token == 8

    def accept(self, token: int) -> None:
        self.accepted.append(token)


def vetoes(
    inner: Scripted | None = None,
    banned: list[bytes] | None = None,
    least: int = 0,
    never: tuple[int, ...] = (),
) -> Vetoes:
    strings = BannedStrings(banned, Spellings(PIECES)) if banned else None
    return Vetoes(
        inner,
        strings,
        never=[*never, *(strings.always if strings else ())],
        least=least,
        endings=[END],
        size=len(PIECES),
    )


def said(guide: Vetoes) -> list[int] | None:
    allowed = guide.allowed()
    return None if allowed is None else allowed.tolist()


def test_allowed_with_nothing_to_veto_here_is_what_the_guide_allows() -> None:
    assert said(vetoes(banned=[b"ab"])) is None
    assert said(vetoes(Scripted([1, 2]), banned=[b"ab"])) == [1, 2]


def test_allowed_leaves_out_what_completes_a_banned_string() -> None:
    guide = vetoes(banned=[b"ab"])
    guide.accept(1)
    assert said(guide) == [0, 1, 3, 7]  # not b, bc, bb


def test_banned_always_are_the_tokens_that_hold_a_whole_string() -> None:
    assert BannedStrings([b"ab", b"ca"], Spellings(PIECES)).always == [4, 6, 7]


def test_allowed_before_the_least_length_has_no_end_token() -> None:
    guide = vetoes(least=2)
    assert said(guide) == [1, 2, 3, 4, 5, 6, 7, 8]
    guide.accept(1)
    assert said(guide) == [1, 2, 3, 4, 5, 6, 7, 8]
    guide.accept(1)
    assert said(guide) is None


def test_allowed_where_nothing_is_left_says_so() -> None:
    guide = vetoes(Scripted([2]), banned=[b"ab"])
    guide.accept(1)
    with pytest.raises(LlmrunError, match="leave no token"):
        guide.allowed()


def test_allowed_leaves_out_what_may_never_come() -> None:
    assert said(vetoes(Scripted([1, 2, 3]), never=(2, 5))) == [1, 3]
    assert said(vetoes(never=(2, 5))) is None  # a bias keeps them away
    with pytest.raises(LlmrunError, match="leave no token"):
        vetoes(Scripted([2, 5]), never=(2, 5)).allowed()


def test_forced_token_that_may_never_come_is_left_to_what_is_allowed() -> None:
    assert vetoes(Scripted([3, 1], forced=[3, 1, 2]), never=(1,)).forced() == [3]
    assert vetoes(Scripted([3, 1], forced=[1, 2]), never=(1,)).forced() == []
    with pytest.raises(LlmrunError, match="leave no token"):
        vetoes(Scripted(None, forced=[1, 2]), never=(1,)).forced()


def test_forced_stops_before_a_banned_string() -> None:
    assert vetoes(Scripted(forced=[3, 1, 2]), banned=[b"ab"]).forced() == [3, 1]
    with pytest.raises(LlmrunError, match="leave no token"):
        vetoes(Scripted(forced=[4]), banned=[b"ab"]).forced()


def test_vetoes_pass_on_what_the_guide_inside_says() -> None:
    inner = Scripted()
    guide = vetoes(inner, least=1)
    guide.accept(5)
    assert (guide.thought, guide.quiet, guide.ended, guide.replaces(8)) == (3, True, False, True)
    assert inner.accepted == [5]


@given(st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=3), st.randoms())
def test_no_walk_ever_holds_a_banned_string(strings: list[str], chance: object) -> None:
    banned = BannedStrings([text.encode() for text in strings], Spellings(PIECES))
    guide = Vetoes(None, banned, least=0, endings=[END], size=len(PIECES))
    text = b""
    for _ in range(30):
        found = guide.allowed()
        free = range(len(PIECES)) if found is None else found.tolist()
        left = [token for token in free if token not in banned.always]
        token = chance.choice(left)  # type: ignore[attr-defined]
        guide.accept(token)
        text += PIECES[token]
        assert not any(string.encode() in text for string in strings)
