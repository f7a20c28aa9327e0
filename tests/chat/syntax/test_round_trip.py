"""Parsing what a template renders for an assistant's turn gives back that turn.

`LLMRUN_TEST_TEMPLATES` names a folder of `*.jinja` files to hold to it beside the small templates here;
llama.cpp's source has such a folder, `models/templates`.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from llmrun.chat.syntax import NestedArguments, PythonArguments, Syntax, derive
from llmrun.chat.template import ChatTemplate
from tests.chat.syntax.families import FAMILIES, HARMONY
from tests.chat.syntax.parsing import parsed
from tests.chat.syntax.turns import Turn, differences, written

ENV = "LLMRUN_TEST_TEMPLATES"
FILES = sorted(Path(os.environ[ENV]).glob("*.jinja")) if ENV in os.environ else []
SOURCES = FAMILIES | {"harmony": HARMONY}

RICH = {
    "city": "Zürich 🦙",
    "quote": 'say "hi", it\'s',
    "lines": "one\n  two",
    "count": 5,
    "ratio": 0.25,
    "yes": True,
    "list": [1, "a", {"k": "v"}],
    "nest": {"a": {"b": ["ü"]}, "t": False},
    "empty": "",
    "code": "if a < b: print('<x>')",
}
TURNS = (
    Turn("Hello there."),
    Turn("Hello", "Let me think."),
    Turn(calls=[("get_weather", {"city": "Paris"})]),
    Turn(calls=[("get_time", {})]),
    Turn(calls=[("get_weather", RICH)]),
    Turn("Let me look.", calls=[("get_weather", RICH)]),
    Turn("Let me look.", "I need a tool.", [("get_weather", RICH)]),
    Turn(calls=[("one", {"x": 1}), ("other-tool", {"y": "z"})]),
    Turn("", "I need tools.", [("one", {"x": 1}), ("one", {}), ("other-tool", RICH)]),
)

_TEXT = st.text(
    st.one_of(
        st.characters(min_codepoint=32, max_codepoint=126),
        st.sampled_from(list("äß漢🦙\n\t\"'\\<>[]{}()|/=:,")),
    ),
    max_size=24,
)
_NAMES = st.from_regex(r"[a-zA-Z_][a-zA-Z0-9_-]{0,16}", fullmatch=True)
_KEYS = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
_SCALARS = st.one_of(
    _TEXT,
    st.integers(-(10**12), 10**12),
    st.floats(-1e9, 1e9).map(lambda x: round(x, 3)),
    st.booleans(),
    st.none(),
)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(_KEYS, inner, max_size=3)),
    max_leaves=6,
)
_CALLS = st.tuples(_NAMES, st.dictionaries(_KEYS, _VALUES, max_size=4))
_TURNS = st.builds(
    Turn,
    _TEXT.map(str.strip),
    _TEXT.map(str.strip),
    st.lists(_CALLS, max_size=3, unique_by=lambda call: call[0]).map(tuple),
)


@functools.cache
def read(source: str) -> tuple[ChatTemplate, Syntax]:
    template = ChatTemplate(source)
    return template, derive(template, {"eos_token": "<|eos|>"})


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, item in value.items():
            yield from strings(key)
            yield from strings(item)
    elif isinstance(value, list | tuple):
        for item in value:
            yield from strings(item)


def can_be_written(syntax: Syntax, turn: Turn) -> bool:
    """Whether the form can tell this turn from others; several forms cannot say everything."""
    calls = syntax.calls
    if calls is None:
        return not turn.calls
    said = [turn.content, turn.reasoning, *strings([arguments for _, arguments in turn.calls])]
    if any(tag in text for text in said for tag in tags(syntax)):
        return False
    if isinstance(calls.arguments, PythonArguments):  # strings stand there as they are
        return not any(set(text) & set("\\'\"") for text in said)
    if isinstance(calls.arguments, NestedArguments):  # null, and empty lists and objects, leave no trace
        return all(_is_plain(arguments, 0) for _, arguments in turn.calls)
    return bool(calls.marker) or not turn.content.startswith("{")


def _is_plain(value: Any, depth: int) -> bool:
    """Whether tags named after keys tell the value: no nulls, and nothing in lists that differs in type."""
    if isinstance(value, dict):
        return (bool(value) or not depth) and all(_is_plain(item, depth + 1) for item in value.values())
    if isinstance(value, list):
        kinds = {type(item) for item in value}
        return len(kinds) == 1 and kinds <= {str, int, bool}
    return value is not None and value != ""


def tags(syntax: Syntax) -> set[str]:
    """The beginnings of the syntax's own tags: text that holds them cannot be told from them."""
    return set(re.findall(r"(?:[<\[\]~|>]{1,3}/?[｜|]?\w+)", repr(syntax))) | {"<", "[", "]~", ">>>"}


def fits(syntax: Syntax, turn: Turn) -> bool:
    """Whether a turn of this form can hold so many calls, and content beside them."""
    calls = syntax.calls
    if calls is None or not turn.calls:
        return not turn.calls
    return (len(turn.calls) == 1 or calls.several) and bool(calls.marker or not turn.content)


@pytest.mark.parametrize("turn", TURNS, ids=range(len(TURNS)))
@pytest.mark.parametrize("family", SOURCES)
def test_round_trip_known_turns_come_back(family: str, turn: Turn) -> None:
    template, syntax = read(SOURCES[family])
    assert syntax.calls
    assert not fits(syntax, turn) or not differences(template, syntax, turn)


def check_inline(source: str) -> None:
    """Reasoning that is content stands in front of the rest, between its markers as they are written."""
    template, syntax = read(source)
    turn = Turn("Hello", "Let me think.")
    found = written(template, syntax, turn)
    if syntax.reasoning is None or found is None or turn.reasoning not in found[0]:
        pytest.skip("it writes no reasoning")
    apart = parsed(found[0], syntax, primed=found[1])
    inline = parsed(found[0], syntax, primed=found[1], inline=True)
    assert (apart.reasoning, inline.reasoning) == (turn.reasoning, "")
    assert inline.content.strip().startswith(syntax.reasoning.open.strip())
    before, thought, behind = inline.content.partition(turn.reasoning)
    assert "".join((before + thought).split()) in "".join((found[1] + found[0]).split())
    assert behind.rstrip().endswith(apart.content.strip())
    assert syntax.reasoning.close.strip()[:3] in behind


@pytest.mark.parametrize("family", SOURCES)
def test_round_trip_inline_reasoning_keeps_its_markers(family: str) -> None:
    check_inline(SOURCES[family])


@pytest.mark.skipif(not FILES, reason=f"{ENV} names no folder of templates")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_round_trip_inline_reasoning_keeps_its_markers_in_the_wild(file: Path) -> None:
    check_inline(file.read_text("utf-8"))


@pytest.mark.parametrize("family", SOURCES)
@settings(max_examples=20, suppress_health_check=[HealthCheck.filter_too_much])
@given(turn=_TURNS)
def test_round_trip_any_turn_comes_back(family: str, turn: Turn) -> None:
    template, syntax = read(SOURCES[family])
    assume(fits(syntax, turn) and can_be_written(syntax, turn))
    assert not differences(template, syntax, turn)


@pytest.mark.skipif(not FILES, reason=f"{ENV} names no folder of templates")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_round_trip_templates_in_the_wild(file: Path) -> None:
    template, syntax = read(file.read_text("utf-8"))
    found = [differences(template, syntax, turn) for turn in TURNS if fits(syntax, turn)]
    assert not list(filter(None, found))


@pytest.mark.skipif(not FILES, reason=f"{ENV} names no folder of templates")
@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
@settings(max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(turn=_TURNS)
def test_round_trip_any_turn_of_templates_in_the_wild(file: Path, turn: Turn) -> None:
    template, syntax = read(file.read_text("utf-8"))
    assume(fits(syntax, turn) and can_be_written(syntax, turn))
    assert not differences(template, syntax, turn)
