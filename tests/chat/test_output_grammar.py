from __future__ import annotations

import json

import pytest
from llguidance import LLMatcher

from llmrun.chat.output_grammar import MAX_CHARS, grammar_of, not_compiled
from llmrun.errors import LlmrunError
from llmrun.types import OutputFormat


def _schema(schema: object) -> OutputFormat:
    return OutputFormat(kind="json_schema", text=json.dumps(schema), field="format")


@pytest.mark.parametrize(
    "wanted",
    [
        OutputFormat(kind="json_object"),
        _schema({"type": "object"}),
        _schema({"properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
        OutputFormat(kind="regex", text=r"^a/b\d+\n$"),
        OutputFormat(kind="regex", text="(a{1000}){1000}"),
        OutputFormat(kind="lark", text="start: /a+/"),
        OutputFormat(kind="lark", text='%llguidance {}\nstart: "a"'),
        OutputFormat(kind="gbnf", text='root ::= item+\nitem ::= "- " [^\\n]+ "\\n"'),
        OutputFormat(kind="choice", choices=("a", "\x00\x1f", "\N{LLAMA}", '"\\')),
    ],
)
def test_grammar_of_each_notation_compiles(wanted: OutputFormat) -> None:
    assert LLMatcher.validate_grammar(grammar_of(wanted)) == ""


@pytest.mark.parametrize(
    ("wanted", "what"),
    [
        (_schema({"not": {}}), "format: the schema 'not' at # is not supported"),
        (OutputFormat(kind="regex", text=""), "is empty"),
        (OutputFormat(kind="lark", text="a" * (MAX_CHARS + 1)), "is longer than"),
        (OutputFormat(kind="lark", text='start: %json {"type": "object"}'), "holds %json"),
        (
            OutputFormat(kind="gbnf", text="root ::= nothing"),
            "is not GBNF: line 1, column 10: there is no rule 'nothing'",
        ),
        (OutputFormat(kind="gbnf", text='root ::= "a'), "is not GBNF"),
        (
            OutputFormat(kind="gbnf", text="root ::= " + "(" * 30_000),
            "is not GBNF: line 1, column 111: it is nested too deeply",
        ),
        (OutputFormat(kind="choice"), "should hold 1 to"),
        (OutputFormat(kind="choice", choices=("a", "")), "holds an empty choice"),
    ],
)
def test_grammar_of_what_cannot_be_is_refused_by_field(wanted: OutputFormat, what: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        grammar_of(wanted)
    assert (caught.value.kind.status, caught.value.field) == (400, wanted.field)
    assert what in caught.value.message


def test_schema_error_carries_pointer_and_keyword_as_details() -> None:
    with pytest.raises(LlmrunError) as caught:
        grammar_of(_schema({"properties": {"a": {"contains": {}}}}))
    assert caught.value.details == {"pointer": "#/properties/a", "keyword": "contains"}


def test_not_compiled_words_the_regex_parsers_complaint() -> None:
    wanted = OutputFormat(kind="regex", text="(?<!a)b", field="f")
    complaint = LLMatcher.validate_grammar(grammar_of(wanted))
    assert "look-around" in not_compiled(wanted, complaint).message
    assert "\n" not in not_compiled(wanted, complaint).message
