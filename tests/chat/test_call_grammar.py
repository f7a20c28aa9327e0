"""Grammars of calls against the parser, over every template at hand: what one lets through is valid."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from llmrun.chat.call_grammar import CallGrammar
from llmrun.chat.syntax import (
    FALLBACK,
    JSON_TYPES,
    CallPiece,
    Calls,
    ContentPiece,
    OutputParser,
    Slot,
    Syntax,
    TaggedArguments,
)
from llmrun.chat.syntax.derive import derive
from llmrun.chat.syntax.pieces import ArgumentsPiece
from llmrun.chat.template import ChatTemplate
from llmrun.engine import Grammars
from llmrun.errors import LlmrunError
from llmrun.llama import Model
from llmrun.types import Tool

ENV = "LLMRUN_TEST_TEMPLATES"
FILES = sorted(Path(os.environ[ENV]).glob("*.jinja")) if ENV in os.environ else []
TOOLS = (
    Tool(
        name="get_weather",
        parameters={
            "type": "object",
            "properties": {
                "city": {"type": "string", "maxLength": 8},
                "unit": {"enum": ["c", "f"]},
                "days": {"type": "integer", "minimum": 1, "maximum": 7},
                "ok": {"type": "boolean"},
                "tags": {"type": "array", "items": {"type": "string", "maxLength": 3}, "maxItems": 2},
                "at": {
                    "type": "object",
                    "properties": {"x": {"type": "number", "minimum": 0, "maximum": 9}},
                    "required": ["x"],
                    "additionalProperties": False,
                },
            },
            "required": ["city", "unit", "ok"],
        },
    ),
    Tool(name="now"),
)
SCHEMAS = {tool.name: tool.parameters or {"maxProperties": 0} for tool in TOOLS}


def calls_of(calls: Calls, tools: Any = TOOLS, *, exact: bool = True) -> CallGrammar:
    return CallGrammar(calls=calls, tools=tools, control={}, ends=(), exact=exact)


def said(model: Model, grammars: Grammars, grammar: str, seed: int) -> str:
    """What somebody says who speaks at random within `grammar`, in ASCII where that is possible."""
    chance = random.Random(seed)
    (constraint,) = grammars.start(grammar, 1)
    tokens: list[int] = []
    while not constraint.ended and len(tokens) < 2000:
        forced = constraint.forced()
        if not forced:
            allowed = [int(token) for token in constraint.allowed()]
            plain = [token for token in allowed if model.vocab.piece(token).isascii()]
            forced = [chance.choice(plain or allowed)]
        for token in forced:
            if model.vocab.is_eog(token):
                return model.vocab.detokenize(tokens, special=False).decode()
            constraint.accept(token)
            tokens.append(token)
    return model.vocab.detokenize(tokens, special=False).decode()


def assert_valid_calls(syntax: Syntax, text: str) -> int:
    parser = OutputParser(syntax, TOOLS)
    pieces = [*parser.feed(text), *parser.close()]
    names = {piece.call: piece.name for piece in pieces if isinstance(piece, CallPiece)}
    assert names, text
    assert not "".join(piece.text for piece in pieces if isinstance(piece, ContentPiece)).strip(), text
    for call, name in names.items():
        arguments = "".join(
            piece.text for piece in pieces if isinstance(piece, ArgumentsPiece) and piece.call == call
        )
        jsonschema.validate(json.loads(arguments), SCHEMAS[name])
    return len(names)


def test_fallback_calls_are_valid_one_or_several(model: Model, grammars: Grammars) -> None:
    assert FALLBACK.calls is not None
    grammar = calls_of(FALLBACK.calls)
    counts = {
        several: [
            assert_valid_calls(FALLBACK, said(model, grammars, grammar.whole(several=several), seed))
            for seed in range(8)
        ]
        for several in (True, False)
    }
    assert set(counts[False]) == {1}
    assert max(counts[True]) > 1


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_calls_in_the_form_of_any_template_are_valid(model: Model, grammars: Grammars, file: Path) -> None:
    syntax = derive(ChatTemplate(file.read_text("utf-8")), {"bos_token": "<s>", "eos_token": "</s>"})
    if syntax.calls is None:
        pytest.skip("the template knows no calls")
    if not syntax.calls.head.isascii():
        pytest.skip("the tiny vocabulary puts a space in front of what begins with no ASCII letter")
    grammar = calls_of(syntax.calls).whole(several=True)
    for seed in range(3):
        assert_valid_calls(syntax, said(model, grammars, grammar, seed))


def test_grammar_behind_the_marker_is_the_rest_of_the_call(model: Model, grammars: Grammars) -> None:
    assert FALLBACK.calls is not None
    ((marker, behind),) = calls_of(FALLBACK.calls).behind(several=True).items()
    assert marker == "<tool_call>"
    assert behind is not None
    for seed in range(4):
        assert assert_valid_calls(FALLBACK, marker + said(model, grammars, behind, seed)) == 1


def test_what_the_prompt_holds_already_is_not_written_again(model: Model, grammars: Grammars) -> None:
    assert FALLBACK.calls is not None
    primed = "<tool_call>\n"
    text = said(model, grammars, calls_of(FALLBACK.calls).whole(several=False, primed=primed), 0)
    assert text.startswith('{"name": "')
    assert assert_valid_calls(FALLBACK, primed + text) == 1


TAGGED = Calls(
    call=("<call ", Slot.NAME, ">", Slot.ARGUMENTS, "</call>"),
    arguments=TaggedArguments(
        open="<p ",
        between=tuple((kind, ">") for kind in JSON_TYPES),
        close=tuple((kind, "</p>") for kind in JSON_TYPES),
    ),
)


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [({"type": "string", "pattern": "a+"}, "pattern"), ({"type": ["string", "integer"]}, "type")],
)
def test_what_a_form_has_no_place_for_is_refused_by_place_or_left_open(
    schema: dict[str, Any], keyword: str
) -> None:
    tool = Tool(name="f", parameters={"type": "object", "properties": {"a": schema}})
    with pytest.raises(LlmrunError) as caught:
        calls_of(TAGGED, (tool,)).whole(several=False)
    assert caught.value.field == "tools.0"
    assert caught.value.details == {"pointer": "#/properties/a", "keyword": keyword}
    assert calls_of(TAGGED, (tool,), exact=False).behind(several=False)["<call"] is not None


def test_loose_tool_of_any_arguments_has_no_grammar_in_a_form_of_tags() -> None:
    loose = Tool(name="f", parameters={"type": "object"})
    assert calls_of(TAGGED, (loose,), exact=False).behind(several=False) == {"<call": None}
