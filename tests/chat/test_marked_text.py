from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.chat import marked_text
from llmrun.chat.control import ControlTokens
from llmrun.chat.mark import Mark
from tests.chat.vocabs import CharVocab

CONTROL = ControlTokens(CharVocab({"<t>": 1, "[X]": 2}))
MARK = Mark(CONTROL, "")
TEXTS = st.text(alphabet="<t>[X] \n", max_size=8)
SOUGHT = st.text(alphabet="<t>[X] \n", min_size=1, max_size=3)
PARTLY = st.lists(st.tuples(TEXTS, st.booleans()), max_size=3)


def partly_marked(parts: list[tuple[str, bool]]) -> tuple[str, str]:
    """A text, and the same with some of its parts marked: the template wrote the others."""
    plain = "".join(text for text, _ in parts)
    return plain, "".join(MARK.outside(text) if marked else text for text, marked in parts)


@pytest.mark.parametrize(
    "method",
    ["split", "partition", "rpartition", "count", "startswith", "endswith", "strip", "lstrip", "rstrip"],
)
@given(parts=PARTLY, sought=SOUGHT)
def test_method_finds_despite_marks(method: str, parts: list[tuple[str, bool]], sought: str) -> None:
    plain, marked = partly_marked(parts)
    bound = marked_text.bound(MARK, marked, method)
    assert bound is not None
    overlapping = any(sought[i:] == sought[: len(sought) - i] for i in range(1, len(sought)))
    if method == "rpartition" and overlapping:  # the rightmost of overlapping places: not looked for
        return
    assert MARK.clean(bound(sought)) == getattr(plain, method)(sought)


@given(parts=PARTLY, sought=SOUGHT, new=TEXTS, count=st.integers(-1, 2))
def test_replace_and_split_keep_to_their_limit(
    parts: list[tuple[str, bool]], sought: str, new: str, count: int
) -> None:
    plain, marked = partly_marked(parts)
    replace, split = (marked_text.bound(MARK, marked, name) for name in ("replace", "split"))
    assert replace is not None
    assert split is not None
    assert MARK.clean(replace(sought, new, count)) == plain.replace(sought, new, count)
    assert MARK.clean(split(sought, maxsplit=count)) == plain.split(sought, count)


@pytest.mark.parametrize(
    ("method", "args", "result"),
    [
        ("rsplit", ("<t>", 1), ["a<t>b", "c"]),
        ("rsplit", ("<t>",), ["a", "b", "c"]),
        ("rsplit", ("<t>", 0), ["a<t>b<t>c"]),
        ("split", (), ["a<t>b<t>c"]),
        ("endswith", (("<t>c", "x"),), True),
        ("startswith", ("<t>", 1), True),
        ("strip", (), "a<t>b<t>c"),
    ],
)
def test_method_with_its_other_arguments(method: str, args: tuple[Any, ...], result: Any) -> None:
    bound = marked_text.bound(MARK, MARK.outside("a<t>b<t>c"), method)
    assert bound is not None
    assert MARK.clean(bound(*args)) == result


def test_find_gives_places_in_the_marked_text() -> None:
    marked = MARK.outside("<b<t>")
    find, rfind = (marked_text.bound(MARK, marked, name) for name in ("find", "rfind"))
    assert find is not None
    assert rfind is not None
    assert marked[find("<t>") :] == marked[rfind("<t>") :] == MARK.outside("<t>")
    assert find("<x>") == rfind("<x>") == -1


def test_methods_that_look_for_nothing_stay_as_they_are() -> None:
    assert marked_text.bound(MARK, MARK.outside("<t>"), "upper") is None


@given(parts=PARTLY, sought=SOUGHT)
def test_what_is_cut_off_never_frees_a_lead(parts: list[tuple[str, bool]], sought: str) -> None:
    marked = MARK.outside("".join(text for text, _ in parts))
    for method in ("split", "rsplit", "partition", "rpartition"):
        bound = marked_text.bound(MARK, marked, method)
        assert bound is not None
        assert list(CONTROL.find("".join(bound(sought)))) == []
