"""Templates that would take all time or memory: they fail with words, and the process lives on."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from llmrun.chat import sandbox, thinking
from llmrun.chat.bounds import bounded
from llmrun.chat.prompt import Prompter
from llmrun.chat.template import ChatTemplate
from llmrun.errors import TEMPLATE, LlmrunError
from llmrun.types import GenerateRequest, Message
from tests.chat.vocabs import CharVocab

REQUEST = GenerateRequest(id="r", model="m", messages=(Message(role="user", content="hi"),))
ENDLESS = {
    "loops": "{% for a in r %}{% for b in r %}{% for c in r %}{% endfor %}{% endfor %}{% endfor %}",
    "turns left out": "{% for a in r %}{% for b in r if not b + 1 %}{% endfor %}{% endfor %}",
    "macros": "{% macro f(n) %}{% if n %}{{ f(n - 1) }}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(40) }}",
    "many filters in a row": "{% set x = r | list %}" + "{% set y = x | sum %}" * 2000,
    "many calls in a row": "{% set x = 'ab' * 100000 %}" + "{% set y = x.upper() %}" * 2000,
    "recursion": "{% for n in [40] recursive %}{% if n %}{{ loop([n - 1, n - 1]) }}{% endif %}{% endfor %}",
}
GROWING = {
    "padding": "{{ 'x' | center(3000000000) }}",
    "format": "{{ '%3000000000d' % 3 }}",
    "json": "{{ [1] | tojson(indent=3000000000) }}",
    "filling up": "{{ [1] | batch(3000000000, 0) | list | length }}",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_template_without_end_fails_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 0.05)
    template = ChatTemplate("{% set r = range(100000) %}" + ENDLESS[name])
    began = time.monotonic()
    with pytest.raises(LlmrunError, match=r"fails in line 1: it runs for more than 0\.05 s"):
        template.render({})
    assert time.monotonic() - began < 5


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system keeps no such limit")
@pytest.mark.parametrize("name", GROWING)
def test_template_that_grows_without_bound_fails_alone(name: str) -> None:
    prompter = Prompter(GROWING[name], CharVocab({}))
    with pytest.raises(LlmrunError, match="it needs too much memory") as failure:
        prompter.encode(REQUEST)
    assert failure.value.kind is TEMPLATE
    assert len(bytearray(2 * 1024**3)) == 2 * 1024**3  # the limit is gone again


def test_template_that_grows_costs_nothing_until_it_is_rendered() -> None:
    ChatTemplate("{% if messages[0].content == 'x' %}{{ 'x' | center(3000000000) }}{% endif %}")


@pytest.mark.parametrize("before", ["pass", "with bounds.bounded(): pass"], ids=["alone", "after one within"])
def test_bounded_operation_without_end_ends_the_process(before: str) -> None:
    code = (
        "from llmrun.chat import bounds\n"
        "bounds.SECONDS = 0.3\n"
        "with bounds.bounded():\n"
        f"  {before}\n"
        "  sum(1 for _ in iter(int, 1))\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=30)
    assert ended.returncode == 1
    assert b"Timeout" in ended.stderr


def test_bounded_code_that_ends_leaves_no_timer() -> None:
    with pytest.raises(ValueError, match="x"), bounded():
        raise ValueError("x")


def test_switches_of_a_slow_template_are_sought_in_bounded_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(thinking, "MAX_SECONDS", 0.1)
    asks = "{% if enable_thinking or thinking or reasoning or thinking_mode or may_think %}{% endif %}"
    slow = ChatTemplate(asks + "{% set r = range(100000) %}" + ENDLESS["loops"])
    began = time.monotonic()
    assert thinking.find_switches(slow) == thinking.Switches()
    assert time.monotonic() - began < 0.5
