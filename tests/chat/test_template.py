from __future__ import annotations

import contextlib
import subprocess
import sys
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmrun.chat import render_context
from llmrun.chat.template import MAX_SOURCE, ChatTemplate, render
from llmrun.errors import TEMPLATE, LlmrunError
from tests.chat.templates import CHATML, LLAMA3, MISTRAL, SMOLLM2

HELLO = [{"role": "user", "content": "Hello"}]
TURNS = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi  "},
    {"role": "assistant", "content": " Hello! "},
    {"role": "user", "content": "Grüße 🦙"},
]


def failure(template: str, messages: Any = HELLO, **kwargs: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        render(template, messages, **kwargs)
    assert caught.value.kind is TEMPLATE
    return caught.value


def test_render_chatml_gives_every_turn() -> None:
    assert render(CHATML, TURNS) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi  <|im_end|>\n"
        "<|im_start|>assistant\n Hello! <|im_end|>\n<|im_start|>user\nGrüße 🦙<|im_end|>\n"
        "<|im_start|>assistant\n"
    )


def test_render_without_generation_prompt_ends_after_the_last_turn() -> None:
    assert render(CHATML, HELLO, add_generation_prompt=False) == "<|im_start|>user\nHello<|im_end|>\n"


def test_render_llama3_shape_trims_and_begins_with_bos() -> None:
    assert render(LLAMA3, TURNS, bos_token="<|begin_of_text|>") == (
        "<|begin_of_text|><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\nHello!<|eot_id|>"
        "<|start_header_id|>user<|end_header_id|>\n\nGrüße 🦙<|eot_id|>"
        "<|start_header_id|>assistant<|end_header_id|>\n\n"
    )


def test_render_mistral_shape_puts_the_system_text_into_the_last_turn() -> None:
    assert render(MISTRAL, TURNS, bos_token="<s>", eos_token="</s>") == (
        "<s>[INST] Hi  [/INST] Hello!</s>[INST] Be brief.\n\nGrüße 🦙[/INST]"
    )


def test_render_smollm2_adds_its_own_system_turn() -> None:
    assert render(SMOLLM2, HELLO) == (
        "<|im_start|>system\nYou are a helpful AI assistant named SmolLM, trained by Hugging Face<|im_end|>\n"
        "<|im_start|>user\nHello<|im_end|>\n<|im_start|>assistant\n"
    )


def test_render_with_empty_system_text_keeps_it_empty() -> None:
    assert render(SMOLLM2, [{"role": "system", "content": ""}, *HELLO]).startswith(
        "<|im_start|>system\n<|im_end|>\n<|im_start|>user\nHello"
    )


def test_raise_exception_carries_the_templates_words_as_a_400() -> None:
    error = failure(MISTRAL, [*HELLO, *HELLO])
    assert "Roles must alternate user/assistant/user/assistant/..." in error.message
    assert error.kind.status == 400


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ {'b': 'é<&>\"', 'a': 1} | tojson }}", '{"b": "é<&>\\"", "a": 1}'),
        ("{{ {'b': 'é🦙'} | tojson(ensure_ascii=True) }}", '{"b": "\\u00e9\\ud83e\\udd99"}'),
        ("{{ [1, {'a': []}] | tojson(indent=2) }}", '[\n  1,\n  {\n    "a": []\n  }\n]'),
        ("{{ {'b': 1, 'a': 2} | tojson(separators=(',', ':')) }}", '{"b":1,"a":2}'),
        ("{{ {'b': 1, 'a': 2} | tojson(sort_keys=true) }}", '{"a": 2, "b": 1}'),
        ("{{ [none, true, 1.5] | tojson }}", "[null, true, 1.5]"),
        ("{{ 'x' | tojson(false, none, none, true) }}", '"x"'),
    ],
)
def test_tojson_writes_as_transformers_does(template: str, text: str) -> None:
    assert render(template, HELLO) == text


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{% for i in range(9) %}{% if i == 3 %}{% break %}{% endif %}{{ i }}{% endfor %}", "012"),
        ("{% for i in range(4) %}{% if i == 1 %}{% continue %}{% endif %}{{ i }}{% endfor %}", "023"),
        (
            "{% set s = namespace(n=0) %}{% for m in [1, 2] %}{% set s.n = s.n + m %}{% endfor %}{{ s.n }}",
            "3",
        ),
        ("{% set x = 1 %}{% generation %}{% set x = 2 %}{{ x }}{% endgeneration %}{{ x }}", "21"),
        (
            "{% macro f(n, sep=', ') %}<{{ n }}{{ sep }}>{% endmacro %}{{ f('a', sep=';') }}{{ f('b') }}",
            "<a;><b, >",
        ),
        ("{{ messages | selectattr('role', 'equalto', 'user') | list | length }}", "1"),
        ("{{ messages | map(attribute='role') | join('-') }}", "user"),
        ("{% for k, v in messages[0].items() %}{{ k }}={{ v }};{% endfor %}", "role=user;content=Hello;"),
        ("{{ 'yes' if tools is none and nothing is not defined else 'no' }}", "yes"),
        ("{{ dict(a=1)['a'] }}{{ {'x': 1} | dictsort | first }}", "1('x', 1)"),
        ("  {% if true %}\nx\n  {% endif %}\ny", "x\ny"),
        ("{{ nothing }}|{{ messages[0].nothing }}", "|"),
        ("{{ 'a' ~ 1 ~ none }}{{ 'abc'[1:] }}{{ 'b' in 'abc' }}{{ 2 * 'ab' }}", "a1NonebcTrueabab"),
        ("{{ '%s-%d' % ('a', 3) }}{{ '{:>3}'.format('x') }}{{ 'a,b'.split(',')[-1] | upper }}", "a-3  xB"),
    ],
)
def test_render_has_what_templates_use(template: str, text: str) -> None:
    assert render(template, HELLO) == text


def test_strftime_now_formats_the_local_time() -> None:
    before = datetime.now().strftime("%Y-%m-%d")
    shown = render("{{ strftime_now('%Y-%m-%d') }}", HELLO)
    assert shown in {before, datetime.now().strftime("%Y-%m-%d")}


def test_render_passes_tools_documents_and_any_other_variable() -> None:
    template = "{{ tools[0].name }} {{ documents[0].title }} {{ thinking }} {{ template }} {{ self }}"
    text = render(
        template, HELLO, tools=[{"name": "t"}], documents=[{"title": "d"}], thinking=True, template="x"
    )
    assert text.startswith("t d True x ")


def test_render_drops_keys_without_a_value() -> None:
    assert render("{{ messages[0].content is defined }}", [{"role": "user", "content": None}]) == "False"


@pytest.mark.parametrize("name", ["reasoning_content", "thinking", "reasoning"])
def test_render_shows_reasoning_under_both_names(name: str) -> None:
    template = "{{ messages[0].thinking }}|{{ messages[0].reasoning_content }}"
    assert render(template, [{"role": "assistant", name: "hm"}]) == "hm|hm"


def test_template_that_is_no_jinja_names_the_line() -> None:
    assert "line 2" in failure("a\n{% if %}").message


@pytest.mark.parametrize(
    ("template", "part"),
    [
        ("\n\n{{ messages[0].nothing.more }}", "line 3"),
        ("{{ messages[7].role }}", "no element 7"),
        ("{{ messages[0].content + 1 }}", "line 1"),
        ("{{ 1 / 0 }}", "division by zero"),
        ("{{ nothing | tojson }}", "not JSON serializable"),
        ("{{ dict.fromkeys }}{{ nothing() }}", "undefined"),
        ("{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "without end"),
        ("{% include 'x' %}", "line 1"),
    ],
)
def test_template_that_fails_says_where_or_why(template: str, part: str) -> None:
    error = failure(template)
    assert part in error.message
    assert "\n" not in error.message


@pytest.mark.parametrize(
    "template",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ messages[0].update(a=1) }}",
        "{{ raise_exception.__globals__ }}",
        "{{ strftime_now.__code__ }}",
        "{{ '{0.__class__.__mro__}'.format('') }}",
        "{{ dict.__subclasses__() }}",
        "{{ (messages | map(attribute='__class__') | list)[0].mro() }}",
        "{{ namespace(_x=1) }}",
        "{% set ns = namespace() %}{% set ns._x = 1 %}",
        "{{ self._TemplateReference__context.environment }}",
        "{{ lipsum.__globals__ }}",
        "{{ cycler.__init__.__globals__ }}",
        "{{ messages | attr('__class__') }}{{ messages | attr('copy') | attr('__self__') }}",
        "{{ [''] | map('attr', '__class__') | join }}",
        "{{ [''] | selectattr('__class__') | join }}{{ [''] | sum(attribute='__class__') }}",
        "{{ '{a.__class__}'.format_map({'a': 1}) }}",
        "{% macro m() %}{{ caller._func.__globals__ }}{% endmacro %}{% call m() %}{% endcall %}",
        "{% for a in [1] %}{{ loop.__init__.__globals__ }}{{ loop._iterator }}{% endfor %}",
        "{{ (messages | map('upper')).gi_frame }}{{ (messages | map('upper')).gi_code }}",
        "{{ joiner().__call__.__globals__ }}{{ nothing._undefined_exception }}",
        "{% import 'os' as os %}{{ os }}",
        "{% extends '/etc/passwd' %}",
        "{% include ['/etc/passwd', 'file:///etc/passwd'] %}",
        "{{ environment }}{{ context }}{{ request }}{{ open }}{{ __import__ }}{{ __builtins__ }}",
    ],
)
def test_sandbox_shows_nothing_of_python(template: str) -> None:
    try:
        shown = render(template, HELLO)
    except LlmrunError as error:
        shown = "" if error.kind is TEMPLATE else str(error)
    assert shown == ""


def test_sandbox_says_what_it_refused() -> None:
    assert "'append' of 'GivenList' object is unsafe" in failure("{{ messages.append(1) }}").message
    assert (
        "'append' of 'GivenList' object is unsafe"
        in failure("{{ messages[0].x.append(1) }}", [{**HELLO[0], "x": []}]).message
    )
    assert "private name" in failure("{{ namespace(_x=1) }}").message


def test_sandbox_lets_a_template_change_lists_of_its_own() -> None:
    template = "{% set queue = [1, 2] %}{% set _ = queue.append(3) %}{{ queue.pop(0) }}{{ queue }}"
    assert render(template, HELLO) == "1[2, 3]"


def test_render_json_of_what_a_filter_gives_is_a_list() -> None:
    assert render("{{ messages | map(attribute='role') | tojson }}", HELLO) == '["user"]'


@pytest.mark.parametrize(
    "template",
    [
        "{{ " + "(" * 50_000 + "1" + ")" * 50_000 + " }}",
        "{{ " + "not " * 50_000 + "1 }}",
        "{% if 1 %}" * 5_000 + "{% endif %}" * 5_000,
        "{% for a in [1] %}" * 120 + "{% endfor %}" * 120,
        "{{ " + "9" * 5_000 + " }}",
        "x" * (MAX_SOURCE + 1),
    ],
    ids=["parentheses", "operators", "conditions", "loops", "digits", "length"],
)
def test_template_that_python_cannot_compile_is_an_error_of_the_template(template: str) -> None:
    with pytest.raises(LlmrunError, match=r"cannot be read|characters") as failed:
        ChatTemplate(template)
    assert failed.value.kind is TEMPLATE


@pytest.mark.parametrize(
    "template",
    ["{{ range(10 ** 9) | list }}", "{{ 'x' * 10 ** 10 }}", "{{ [1] * 10 ** 10 }}", "{{ 9 ** 999999999 }}"],
)
def test_sandbox_refuses_values_without_measure(template: str) -> None:
    failure(template)


def test_render_refuses_endless_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(render_context, "MAX_SIZE", 1000)
    monkeypatch.setattr(render_context, "SIZE_EACH", 0)
    assert "more than 1000" in failure("{% for i in range(1000) %}ab{% endfor %}").message


def test_render_never_changes_what_it_was_given() -> None:
    messages = [{"role": "user", "content": "x", "name": None}]
    render(CHATML, messages)
    assert messages == [{"role": "user", "content": "x", "name": None}]


def test_template_is_compiled_once_and_renders_many_times() -> None:
    template = ChatTemplate("{{ messages[0].content }}{% set seen = 1 %}{{ count }}")
    assert [template.render({"messages": HELLO, "count": n}) for n in range(3)] == [
        "Hello0",
        "Hello1",
        "Hello2",
    ]


def test_literals_and_names_are_the_templates_own_words() -> None:
    template = ChatTemplate("<|a|>{{ m.role ~ '<b>' }}{{ m['key'] }}")
    assert {"<|a|>", "<b>", "key"} <= set(template.literals)
    assert {"role", "key"} <= template.names


def test_import_of_template_loads_no_heavy_library() -> None:
    program = (
        "import sys, llmrun.chat.template\n"
        "assert not {'jinja2', 'llama_cpp', 'numpy', 'pydantic'} & set(sys.modules), 'heavy'\n"
        "assert not any(m.startswith(('llmrun.llama', 'llmrun.engine')) for m in sys.modules), 'layer'\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr


TAGS = ["{{ ", " }}", "{% ", " %}", "{# ", " #}", "\n"]
STATEMENTS = [
    "for m in messages",
    "endfor",
    "if ",
    "else",
    "endif",
    "set x = ",
    "macro f(a)",
    "endmacro",
    "generation",
]
WORDS = [
    "m",
    "messages",
    "m.content",
    "loop",
    "x",
    "f(1)",
    "[0]",
    "[-1:]",
    "(",
    ")",
    "'a'",
    '"',
    "|",
    "~",
    "+",
    "*",
    "**",
    "-",
    ".",
    "in",
    "recursive",
    "__class__",
    "range(9)",
]
CALLS = [
    "tojson",
    "map('attr', 'x')",
    "join",
    "sort",
    "not ",
    "is defined",
    "namespace()",
    "raise_exception('x')",
]
PARTS = st.sampled_from([*TAGS, *STATEMENTS, *WORDS, *CALLS, "strftime_now('%Y')", "9" * 20])


@settings(max_examples=300)
@given(st.lists(st.one_of(PARTS, st.text(max_size=4)), max_size=25).map("".join))
def test_any_template_renders_or_fails_in_words(source: str) -> None:
    with contextlib.suppress(LlmrunError):
        assert isinstance(render(source, HELLO), str)
