"""What models write that their templates do not show: near misses, variants, and calls that are cut."""

from __future__ import annotations

import functools
from typing import Any

import pytest

from llmrun.chat.syntax import Syntax, derive
from llmrun.chat.template import ChatTemplate
from llmrun.types import Tool
from tests.chat.syntax.families import FAMILIES, HARMONY
from tests.chat.syntax.parsing import ParsedCall, parsed

TOOLS = (
    Tool(
        name="f",
        parameters={
            "type": "object",
            "properties": {
                "s": {"type": "string"},
                "i": {"type": "integer"},
                "b": {"type": "boolean"},
                "any": {},
                "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
                "choice": {"enum": ["1", "2"]},
                "ref": {"$ref": "#/$defs/list"},
            },
            "$defs": {"list": {"type": "array"}},
        },
    ),
)


@functools.cache
def syntax(family: str) -> Syntax:
    return derive(ChatTemplate({**FAMILIES, "harmony": HARMONY}[family]))


def call(family: str, text: str, **options: Any) -> ParsedCall:
    """The one call in `text`, beside which there is no content."""
    found = parsed(text, syntax(family), TOOLS, **options)
    assert found.content == ""
    assert len(found.calls) == 1
    return found.calls[0]


@pytest.mark.parametrize(
    ("family", "text"),
    [
        ("hermes", '<tool_call>{"name":"f","arguments":{"i":1}}</tool_call>'),
        ("hermes", '<tool_call>\n[{"name": "f", "arguments": {"i": 1}}]\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "f", "arguments": "{\\"i\\": 1}"}\n</tool_call>\n'),
        ("hermes", '\n\n<tool_call>\n{"id": 7, "arguments": {"i": 1}, "name": "f"}\n</tool_call>'),
        ("hermes", '<tool_call>\n{"name": "f", "parameters": {"i": 1}}'),
        ("mistral list with ids", '[TOOL_CALLS][{"name": "f", "arguments": {"i": 1}, "id": "abcdefghi"}]'),
        ("llama bare object", ' {"name":"f" , "parameters":{"i":1}}'),
        ("llama bare object", '{"type": "function", "name": "f", "arguments": {"i": 1}}'),
        ("qwen coder", "<tool_call><function=f><parameter=i>1</parameter></function></tool_call>"),
        ("qwen coder", "<function=f>\n<parameter=i>\n1\n</parameter>\n</function>\n</tool_call>"),
        ("glm", "<tool_call>f\n<arg_key>i</arg_key>\n<arg_value>1</arg_value></tool_call>"),
        ("pythonic", "<|tool_call_start|>[ f( i = 1 ) ]<|tool_call_end|>"),
        (
            "kimi",
            '<|calls_begin|> <|call_begin|>functions.f:0<|args_begin|> {"i": 1}<|call_end|><|calls_end|>',
        ),
        ("gemma", "<|tool_call>call:f{i: 1}<tool_call|>"),
        (
            "harmony",
            '<|channel|>commentary to=functions.f <|constrain|>json<|message|>{"i": 1}<|call|>',
        ),
        ("harmony", ' to=functions.f<|channel|>commentary json<|message|>{"i": 1}<|call|>'),
        ("harmony", '<|channel|>analysis to=functions.f code<|message|>{"i": 1}<|call|>'),
    ],
)
def test_variants_of_a_form_are_the_same_call(family: str, text: str) -> None:
    found = call(family, text)
    assert (found.name, found.arguments, found.complete) == ("f", {"i": 1}, True)


def test_harmony_thoughts_preamble_and_call_come_apart() -> None:
    text = (
        "<|channel|>analysis<|message|>Hm.<|end|><|start|>assistant<|channel|>commentary<|message|>Wait."
        "<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{}<|call|>"
    )
    found = parsed(text, syntax("harmony"), TOOLS)
    assert (found.reasoning, found.content, found.names) == ("Hm.", "Wait.", ["f"])


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("s", "5", "5"),
        ("s", "\ntrue\n", "\ntrue\n"),
        ("s", '{"a": 1}', '{"a": 1}'),
        ("i", " 5 ", 5),
        ("i", "five", "five"),
        ("b", "True", True),
        ("any", "[1, None]", [1, None]),
        ("any", "plain words", "plain words"),
        ("maybe", "null", None),
        ("choice", "2", "2"),
        ("ref", "[]", []),
        ("unknown", "3", 3),
    ],
)
def test_bare_arguments_get_the_types_of_the_schema(key: str, text: str, value: Any) -> None:
    tagged = f"<tool_call>\n<function=f>\n<parameter={key}>\n{text}\n</parameter>\n</function>\n</tool_call>"
    assert call("qwen coder", tagged).arguments == {key: value}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("'a\\n\\'b\\' \\u00e9'", "a\n'b' é"),
        ('"it\'s"', "it's"),
        ("'it's so'", "it's so"),
        ("'\\U0001F999\\x41'", "🦙A"),
        ("{'a': [True, None, -1.5]}", {"a": [True, None, -1.5]}),
        ("[true, null, ')']", [True, None, ")"]),
        ("(1, 2)", [1, 2]),
    ],
)
def test_python_literals_become_json(text: str, value: Any) -> None:
    assert call("pythonic", f"<|tool_call_start|>[f(any={text}, i=1)]<|tool_call_end|>").arguments == {
        "any": value,
        "i": 1,
    }


def test_raw_line_break_in_json_string_is_escaped() -> None:
    assert call("hermes", '<tool_call>{"name": "f", "arguments": {"s": "a\n\tb"}}</tool_call>').arguments == {
        "s": "a\n\tb"
    }


@pytest.mark.parametrize(
    ("family", "text", "so_far"),
    [
        ("hermes", '<tool_call>\n{"name": "f", "arguments": {"s": "ab', '{"s": "ab'),
        ("qwen coder", "<tool_call>\n<function=f>\n<parameter=s>\nab\n</par", '{"s": "ab'),
        ("qwen coder", "<tool_call>\n<function=f>\n<parameter=s>\nab\n</parameter>\n", '{"s": "ab"'),
        ("pythonic", "<|tool_call_start|>[f(s='ab", '{"s": "ab'),
        ("gemma", '<|tool_call>call:f{s:<|"|>ab', '{"s": "ab'),
        ("deepseek", '<｜calls▁begin｜><｜call▁begin｜>function<｜sep｜>f\n```json\n{"s": "ab', '{"s": "ab'),
    ],
)
def test_cut_call_has_its_arguments_so_far_and_is_not_complete(family: str, text: str, so_far: str) -> None:
    found = call(family, text, cut=True)
    assert (found.text, found.complete) == (so_far, False)


@pytest.mark.parametrize("family", ["hermes", "qwen coder", "pythonic", "deepseek", "kimi", "command r"])
def test_cut_before_the_name_shows_nothing_of_the_marker(family: str) -> None:
    calls = syntax(family).calls
    assert calls
    for length in range(1, len(calls.head) + 1):
        if calls.head[:length].strip():
            assert parsed(calls.head[:length], syntax(family), TOOLS, cut=True).content == ""


@pytest.mark.parametrize(
    "text", ['{"answer": 42}', '{"name": "Bob", "parameters": {}}', '{"name": "f"', "{x}"]
)
def test_bare_object_that_calls_no_tool_is_content(text: str) -> None:
    found = parsed(text, syntax("llama bare object"), TOOLS)
    assert (found.content, found.calls) == (text, [])


def test_name_without_arguments_is_content_unless_it_is_cut() -> None:
    text = "Use <function=f> here"
    assert parsed(text, syntax("functionary"), TOOLS).content == text
    assert call("functionary", "<function=f>", cut=True).complete is False


def test_broken_call_ends_where_the_next_begins() -> None:
    text = '[TOOL_CALLS]f[CALL_ID]abcdefghi[ARGS]{"s": x[TOOL_CALLS]f[CALL_ID]abcdefghj[ARGS]{"i": 1}'
    found = parsed(text, syntax("mistral name and arguments"), TOOLS)
    assert [(one.text, one.complete) for one in found.calls] == [('{"s": x', False), ('{"i": 1}', True)]


def test_empty_list_of_calls_is_nothing() -> None:
    assert parsed("Hi<|tool_call_start|>[]<|tool_call_end|>", syntax("pythonic"), TOOLS).content == "Hi"


def test_ids_in_the_text_are_kept() -> None:
    text = "<|calls|><|call:begin|>abc123def<|call:name|>f<|call:args|>{}<|call:end|>"
    assert call("solar", text).id == "abc123def"


@pytest.mark.parametrize(
    ("family", "text", "content"),
    [
        ("solar", "Hi<|call:end|> you", "Hi you"),
        ("solar", "<|calls|>Hello", "Hello"),
        ("gemma", "Hi <|tool_call>call f", "Hi call f"),
        ("gemma", "<tool_call|>Hi", "Hi"),
        ("command r", "Hi<|END_THINKING|> you<|START_ACTION|>", "Hi you"),
        ("mistral name and arguments", "Hi[ARGS] you", "Hi you"),
        ("mistral name and arguments", "Hi [OTHER] you", "Hi [OTHER] you"),
        ("hermes", "The tags </think> and </tool_call>", "The tags </think> and </tool_call>"),
        ("harmony", "Hi", "Hi"),
        ("harmony", "<|message|>Hi", "Hi"),
        ("harmony", "<|channel|>finalHi", "Hi"),
        ("harmony", "<|start|>assistant<|channel|>final<|message|>Hi<|end|>", "Hi"),
        ("harmony", "<|channel|>final<|message|>Hi<|end|><|start|>assistant<|message|> you", "Hi you"),
    ],
)
def test_tag_out_of_its_place_is_left_out_unless_it_may_be_prose(
    family: str, text: str, content: str
) -> None:
    found = parsed(text, syntax(family), TOOLS)
    assert (found.content, found.reasoning, found.calls) == (content, "", [])


def test_reasoning_between_special_tags_may_come_after_content() -> None:
    text = "Hi<|START_THINKING|>Hm.<|END_THINKING|> you"
    found = parsed(text, syntax("command r"), TOOLS)
    assert (found.content, found.reasoning) == ("Hi you", "Hm.")
