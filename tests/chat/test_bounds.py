"""Templates that would take all time or memory: they fail with words, and the process lives on."""

from __future__ import annotations

import subprocess
import sys
import time

import pytest

from llmrun.chat import render_context, thinking
from llmrun.chat.bounds import bounded
from llmrun.chat.control import ControlTokens
from llmrun.chat.mark import Mark
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
_NESTED = (  # each level holds the one below twice; two of them, equal to the last item
    "{% set n = namespace(a=1, b=1.0) %}"
    "{% for i in range(60) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}"
)
_DEEP = "{% set n = namespace(a=(1,)) %}{% for i in range(90000) %}{% set n.a = (n.a,) %}{% endfor %}"
_COLLIDING = "{% set r = range(0, 100000 * (2 ** 61 - 1), 2 ** 61 - 1) %}"  # one hash for all of them
_LONG = "{% set s = 'ab' * 400000 %}"
AT_ONCE = {
    "comparing what nests": _NESTED + "{{ n.a == n.b }}",
    "ordering what nests": _NESTED + "{{ n.a < n.b }}",
    "testing what nests": _NESTED + "{{ n.a is eq(n.b) }}{{ n.a is lt(n.b) }}",
    "seeking what nests": _NESTED + "{{ n.a in [n.b] }}",
    "seeking among its own": _NESTED + "{{ [n.a].index(n.b) }}",
    "counting what nests": _NESTED + "{{ [n.a].count(n.b) }}",
    "sorting what nests": _NESTED + "{{ [n.a, n.b] | sort }}",
    "the least of what nests": _NESTED + "{{ [n.a, n.b] | min }}",
    "what changes": _NESTED + "{% for x in [n.a, n.b] %}{{ loop.changed(x) }}{% endfor %}",
    "writing what nests": _NESTED + "{{ n.a }}",
    "joining what nests": _NESTED + "{{ 'x' ~ n.a }}",
    "formatting what nests": _NESTED + "{{ '%s' % n.a }}{{ '{}'.format(n.a) }}",
    "JSON of what nests": _NESTED + "{{ n.a | tojson(indent=1) }}",
    "JSON of mapped lists": _NESTED + "{{ [n.a] | map('default') | tojson }}",
    "namespaces in each other": "{% set n = namespace(a=1) %}{% for i in range(60) %}"
    "{% set n.a = namespace(x=n.a, y=n.a) %}{% endfor %}{{ n.a }}",
    "mappings in each other": "{% set n = namespace(a=1) %}{% for i in range(60) %}"
    "{% set n.a = {'x': n.a, 'y': n.a} %}{% endfor %}{{ n.a.items() == n.a.copy().items() }}",
    "a list that came to hold itself": "{% set l = [1] %}{% set m = [l, l] %}{% for i in range(60) %}"
    "{% set m = [m, m] %}{{ l.append(m) }}{% endfor %}{{ l == [1] + l }}",
    "a key of what nests": "{% set n = namespace(a=1) %}{% for i in range(60) %}"
    "{% set n.a = (n.a, n.a) %}{% endfor %}{{ {n.a: 1} }}",
    "a key that is deep": _DEEP + "{{ {n.a: 1} }}",
    "an item by a deep key": _DEEP + "{{ {}[n.a] }}",
    "a deep key by a method": _DEEP + "{{ {}.get(n.a) }}",
    "a deep key among others": _DEEP + "{{ [n.a, n.a] | unique | list }}",
    "filters on filters": "{% set n = namespace(g=[1]) %}{% for i in range(90000) %}"
    "{% set n.g = n.g | map('default') %}{% endfor %}{{ n.g | first }}{{ n.h + 1 }}",
    "numbers that double": "{% set n = namespace(a=3) %}{% for i in range(60) %}"
    "{% set n.a = n.a * n.a %}{% endfor %}",
    "a number of many digits": "{% set x = ('f' * 4000000) | int(0, 16) %}{{ x % 7 }}",
    "a number from bytes": "{{ (1).from_bytes(('f' * 4000000).encode(), 'big') // 7 }}",
    "digits without end": "{{ 1.5 | round(1000000000, 'ceil') }}",
    "slices without end": "{{ [1] | slice(10 ** 15) | reject | first }}",
    "adding up lists": "{{ ([[1]] * 400000) | sum(start=[]) | length }}",
    "keys of one hash": _COLLIDING + "{{ dict(r | batch(2)) | length }}",
    "keys of one hash at once": _COLLIDING + "{{ {}.fromkeys(r) | length }}",
    "keys of one hash in a set": _COLLIDING + "{{ ({}.keys() - []).union(r) | length }}",
    "keys of one hash, each once": _COLLIDING + "{{ r | unique | list | length }}",
    "wrapping words": _LONG + "{{ s | wordwrap(1) }}",
    "links": _LONG + "{{ s | urlize }}",
    "tags": "{{ ('<' * 900000) | striptags }}",
    "printing well": "{{ ([[1, 2]] * 100000) | pprint }}",
}
GROWING = {
    "padding": "{{ 'x' | center(3000000000) }}",
    "format": "{{ '%3000000000d' % 3 }}",
    "json": "{{ [1] | tojson(indent=3000000000) }}",
    "filling up": "{{ [1] | batch(3000000000, 0) | list | length }}",
}


@pytest.mark.parametrize("name", ENDLESS)
def test_template_without_end_fails_in_time(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_context, "MAX_SECONDS", 0.05)
    template = ChatTemplate("{% set r = range(100000) %}" + ENDLESS[name])
    began = time.monotonic()
    with pytest.raises(LlmrunError, match=r"fails in line 1: it runs for more than 0\.05 s"):
        template.render({})
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("name", AT_ONCE)
def test_single_operation_that_would_take_for_ever_fails_soon(name: str) -> None:
    template = ChatTemplate(AT_ONCE[name])
    began = time.thread_time()
    with pytest.raises(LlmrunError) as failed:
        template.render({})
    assert failed.value.kind is TEMPLATE
    assert time.thread_time() - began < 3


@pytest.mark.parametrize("name", AT_ONCE)
def test_single_operation_on_marked_text_fails_as_soon(name: str) -> None:
    control = ControlTokens(CharVocab({"<s>": 0}), ())
    template = ChatTemplate(AT_ONCE[name])
    mark = Mark(control, {}, template.names)
    began = time.thread_time()
    with pytest.raises(LlmrunError):
        template.render({"x": mark.outside("<")}, mark)
    assert time.thread_time() - began < 3


def test_long_text_is_sought_in_marked_text_in_time() -> None:
    mark = Mark(ControlTokens(CharVocab({"<s>": 0}), ()), {})
    template = ChatTemplate("{{ x.split('a' * 100000 ~ 'b') | length }}")
    began = time.thread_time()
    assert template.render({"x": mark.outside("<" + "a" * 1_000_000)}, mark) == "1"
    assert time.thread_time() - began < 1


def test_room_and_time_grow_with_what_a_template_is_given() -> None:
    long = [{"role": "user", "content": "x" * 100} for _ in range(40_000)]
    twice = ChatTemplate("{% for m in messages %}{{ m.content }}{{ m.content }}{% endfor %}")
    assert len(twice.render({"messages": long})) == 8_000_000


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% if [] | map('upper') %}yes{% endif %}", "yes"),
        ("{% set l = ['a', 'b'] | map('upper') %}{{ l | first }}{{ l | list }}{{ l | list }}", "A['B'][]"),
        ("{{ [{'n': 1}, 2] | map(attribute='n.m') | first is undefined }}", "True"),
        ("{{ [1, 'x'] | map('abs') | first }}", "1"),
    ],
    ids=["true", "once", "undefined", "errors behind what is taken"],
)
def test_lazy_filters_are_computed_and_seem_lazy(template: str, text: str) -> None:
    assert ChatTemplate(template).render({}) == text


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
    monkeypatch.setattr(render_context, "MAX_SECONDS", 0.05)
    monkeypatch.setattr(thinking, "MAX_SECONDS", 0.1)
    asks = "{% if enable_thinking or thinking or reasoning or thinking_mode or may_think %}{% endif %}"
    slow = ChatTemplate(asks + "{% set r = range(100000) %}" + ENDLESS["loops"])
    began = time.thread_time()  # by which renders are bounded
    assert thinking.find_switches(slow) == thinking.Switches()
    assert time.thread_time() - began < 0.5
