from __future__ import annotations

import pytest

from llmrun.chat.syntax import (
    JSON_TYPES,
    BareKeyArguments,
    Block,
    Calls,
    JsonArguments,
    PythonArguments,
    Slot,
    Syntax,
    TaggedArguments,
    derive,
)
from llmrun.chat.template import ChatTemplate
from tests.chat.syntax.families import FAMILIES
from tests.chat.syntax.turns import Turn, written
from tests.chat.templates import CHATML

HERMES = """\
{%- for m in messages %}
{{- '<|im_start|>' + m.role + '\\n' }}
{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content }}
{%- for call in m.tool_calls or [] %}
{%- if not loop.first or m.content %}{{- '\\n' }}{% endif %}
{{- '<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' }}
{{- call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- endfor %}
{%- if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}
"""


def test_derive_template_without_tools_has_no_calls() -> None:
    assert derive(ChatTemplate(CHATML)) == Syntax(end="<|im_end|>")


def test_derive_hermes_shape_gives_every_literal() -> None:
    found = derive(ChatTemplate(HERMES))
    assert found.reasoning == Block("<think>\n", "\n</think>\n\n")
    assert (found.after_content, found.end) == ("\n", "<|im_end|>")
    assert found.calls
    assert found.calls.call == (
        '<tool_call>\n{"name": "',
        Slot.NAME,
        '", "arguments": ',
        Slot.ARGUMENTS,
        "}\n</tool_call>",
    )
    assert (found.calls.separator, found.calls.arguments) == ("\n", JsonArguments())


def calls_of(source: str) -> Calls:
    calls = derive(ChatTemplate(source)).calls
    assert calls
    return calls


def test_derive_template_that_refuses_everything_has_no_markers() -> None:
    assert derive(ChatTemplate("{{ raise_exception('no') }}")) == Syntax()


def test_derive_template_that_fails_with_tools_is_asked_without() -> None:
    source = "{%- if tools %}{{ raise_exception('no tools') }}{% endif %}" + HERMES
    assert derive(ChatTemplate(source)) == derive(ChatTemplate(HERMES))


def test_derive_arguments_that_must_be_text_are_given_as_text() -> None:
    source = HERMES.replace("call.function.arguments | tojson + ", "call.function.arguments + ")
    assert (calls_of(source).arguments_text, calls_of(HERMES).arguments_text) == (True, False)


def test_derive_call_that_is_written_by_its_id_alone_takes_ids_with_the_name() -> None:
    source = HERMES.replace(
        """{"name": "' + call.function.name + '", "arguments": '""", "' + call.id + '<|arguments|>'"
    )
    calls = calls_of(source)
    assert calls.named_ids
    assert calls.call == (
        "<tool_call>\nfunctions.",
        Slot.NAME,
        ":",
        Slot.INDEX,
        "<|arguments|>",
        Slot.ARGUMENTS,
        "}\n</tool_call>",
    )
    assert calls.before_arguments("f", 1) == "<tool_call>\nfunctions.f:1<|arguments|>"


def test_derive_template_that_refuses_two_calls_knows_one() -> None:
    source = "{%- if messages[-1].tool_calls and messages[-1].tool_calls | length > 1 %}"
    source += "{{ raise_exception('one call only') }}{% endif %}" + HERMES
    assert (calls_of(source).several, calls_of(HERMES).several) == (False, True)
    assert calls_of(source).call == calls_of(HERMES).call


def test_derive_template_that_only_names_its_markers_gets_its_family() -> None:
    source = CHATML + "{%- if tools %}{{ '<|tool_list_start|>[' }}{% endif %}"
    assert calls_of(source).arguments == PythonArguments()


def test_derive_reasoning_that_the_prompt_opens_is_primed() -> None:
    source = HERMES.replace("{{ '<|im_start|>assistant\\n' }}", "{{ '<|im_start|>assistant\\n<think>\\n' }}")
    found = derive(ChatTemplate(source))
    assert (found.primed, found.reasoning) == ("<think>\n", Block("<think>\n", "\n</think>\n\n"))
    assert derive(ChatTemplate(HERMES)).primed == ""


def test_derive_markers_are_cut_at_whole_tags() -> None:
    calls = calls_of(FAMILIES["deepseek"])
    assert (calls.open, calls.close) == ("<｜calls▁begin｜>", "<｜calls▁end｜>")
    assert calls.call[0] == "<｜call▁begin｜>function<｜sep｜>"


def test_derive_tags_with_types_keep_each_of_them() -> None:
    form = calls_of(FAMILIES["deepseek typed tags"]).arguments
    assert isinstance(form, TaggedArguments)
    between = dict(form.between)
    assert (between["string"], between["integer"]) == ('" string="true">', '" string="false">')
    assert set(between) == set(JSON_TYPES)


@pytest.mark.parametrize("family", FAMILIES)
def test_derive_texts_write_what_the_template_renders(family: str) -> None:
    """The literals of a Syntax, put together, are the template's own text of two calls without arguments."""
    template = ChatTemplate(FAMILIES[family])
    syntax = derive(template)
    calls = syntax.calls
    assert calls
    rendered = written(template, syntax, Turn(calls=[("one", {}), ("two", {})]))
    assert rendered
    empty = "{}" if isinstance(calls.arguments, JsonArguments | BareKeyArguments) else ""
    texts = [
        empty.join(
            write(name, index, f"call{index:05d}")
            for write in (calls.before_arguments, calls.after_arguments)
        )
        for index, name in enumerate(("one", "two"))
    ]
    mine = calls.open + calls.separator.join(texts) + calls.close + syntax.end
    assert "".join(mine.split()) == "".join(rendered[0].split())
