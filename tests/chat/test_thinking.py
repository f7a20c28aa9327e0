from __future__ import annotations

from typing import Any

import pytest

from llmrun.chat.template import ChatTemplate
from llmrun.chat.thinking import Switches, as_switched, find_switches, way_of
from llmrun.errors import LlmrunError
from llmrun.types import Effort, Thinking

START = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
WORDS = (
    "{% set ns = namespace(on=true) %}{% for m in messages %}"
    "{% if '/no_think' in m.content %}{% set ns.on = false %}{% endif %}{% endfor %}"
    + START
    + "{{ '<think>' if ns.on else '<think></think>' }}{# '/think' #}"
)


def switches(end: str, start: str = START) -> Switches:
    return find_switches(ChatTemplate(start + end))


@pytest.mark.parametrize(
    ("end", "off", "on"),
    [
        ("{% if enable_thinking %}<think>{% endif %}", {"enable_thinking": False}, {"enable_thinking": True}),
        ("{% if skip_thinking %}</think>{% endif %}", {"skip_thinking": True}, {"skip_thinking": False}),
        (
            "{% if mode_of_thought == 'on' %}<think>{% endif %}",
            {"mode_of_thought": "off"},
            {"mode_of_thought": "on"},
        ),
        (
            "{% if thinking_mode == 'disabled' %}no{% elif thinking_mode == 'enabled' %}<think>{% endif %}",
            {"thinking_mode": "disabled"},
            {"thinking_mode": "enabled"},
        ),
        (
            "{% if reasoning_effort == 'no_think' %}no{% else %}<think>{% endif %}",
            {"reasoning_effort": "no_think"},
            {"reasoning_effort": "high"},
        ),
        ("{% if thinking_budget == 0 %}no{% endif %}", {"thinking_budget": 0}, {}),
    ],
)
def test_switch_is_the_variable_that_changes_the_prompt(end: str, off: Any, on: Any) -> None:
    found = switches(end)
    assert found.off is not None
    assert found.on is not None
    assert (found.off.variables, found.on.variables) == (off, on)


def test_switch_may_be_a_word_in_the_system_turn() -> None:
    found = find_switches(ChatTemplate(WORDS))
    assert found.off is not None
    assert (found.off.word, found.off.variables) == ("/no_think", {})


@pytest.mark.parametrize(
    "end", ["", "{{ '/no_think' }}", "{% set thinking = false %}{{ thinking }}", "{# enable_thinking #}"]
)
def test_template_that_nothing_changes_has_no_switch(end: str) -> None:
    assert switches(end) == Switches()


def test_efforts_are_those_that_the_template_takes() -> None:
    named = switches("Reasoning: {{ reasoning_effort or 'medium' }}")
    assert {effort: dict(way.variables) for effort, way in (named.efforts or {}).items()} == {
        "minimal": {"reasoning_effort": "low"},
        "low": {"reasoning_effort": "low"},
        "medium": {"reasoning_effort": "medium"},
        "high": {"reasoning_effort": "high"},
        "xhigh": {"reasoning_effort": "high"},
        "max": {"reasoning_effort": "high"},
    }
    picky = switches(
        "{% if thinking_effort is defined and thinking_effort not in ['low', 'high'] %}"
        "{{ raise_exception('no') }}{% endif %}{{ thinking_effort }}"
    )
    assert set(picky.efforts or ()) == {"minimal", "low", "high", "xhigh", "max"}
    assert switches("{{ 'x' if reasoning_effort == 'endless' }}").efforts is None
    deep = switches("{{ 'x' if reasoning_effort == 'max' }}").efforts or {}
    assert deep["max"].variables == {"reasoning_effort": "max"}


def test_effort_that_is_unknown_is_refused_with_those_that_are_known() -> None:
    picky = switches(
        "{% if thinking_effort == 'high' %}!{% elif thinking_effort == 'medium' %}{{ 1 // 0 }}{% endif %}"
    )
    with pytest.raises(LlmrunError) as caught:
        way_of(Thinking(effort="medium", field="reasoning_effort"), picky, thinks=True)
    assert "minimal, low, high, xhigh, max" in caught.value.message
    assert caught.value.field == "reasoning_effort"
    assert way_of(Thinking(effort="high"), picky, thinks=True).variables == {"thinking_effort": "high"}


@pytest.mark.parametrize(
    ("effort", "enabled"),
    [("minimal", False), ("low", True), ("medium", True), ("high", True), ("xhigh", True), ("max", True)],
)
def test_effort_for_a_template_that_has_only_a_switch_turns_it(effort: Effort, enabled: bool) -> None:
    found = switches("{% if enable_thinking %}<think>{% endif %}")
    asked = as_switched(Thinking(enabled=True, effort=effort, field="reasoning_effort"), found)
    assert asked.enabled is enabled
    assert way_of(asked, found, thinks=True).variables == {"enable_thinking": enabled}


def test_effort_for_a_template_that_always_thinks_is_taken() -> None:
    asked = as_switched(Thinking(enabled=True, effort="high"), Switches())
    assert way_of(asked, Switches(), thinks=True).variables == {}


def test_effort_that_is_but_a_wish_turns_nothing_on() -> None:
    found = switches("{% if enable_thinking %}<think>{% endif %}")
    asked = as_switched(Thinking(effort="high", wish=True), found)
    assert way_of(asked, found, thinks=True).variables == {}
