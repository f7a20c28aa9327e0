from __future__ import annotations

import pytest

from llmrun.chat import grammars as compose
from llmrun.chat.output_grammar import grammar_of
from llmrun.engine import Grammars
from llmrun.types import OutputFormat
from tests.support.formats import schema_format
from tests.support.tiny import CONTROL


@pytest.mark.parametrize(
    ("wanted", "answer"),
    [
        (schema_format({"enum": ["yes", "no"]}), '"yes"'),
        (OutputFormat(kind="json_object"), "{}"),
        (OutputFormat(kind="regex", text="[0-9]{2}"), "17"),
        (OutputFormat(kind="choice", choices=("red", "blue")), "blue"),
    ],
)
def test_format_of_any_kind_stands_behind_a_marker(
    grammars: Grammars, wanted: OutputFormat, answer: str
) -> None:
    marker = CONTROL["<|im_start|>"]
    grammar = compose.between("<|im_start|>final\n", grammar_of(wanted), {"<|im_start|>": marker})
    (constraint,) = grammars.start(grammar, 1)
    assert list(constraint.allowed()) == [marker]
    constraint.accept(marker)
    assert constraint.fresh().enter(f"final\n{answer}".encode())
    assert not constraint.enter(answer.encode())


@pytest.mark.parametrize("text", ["<tool_call>", "a/b\\c", "\n<x>", 'say "hi" [now]', "<｜call｜>"])
def test_text_without_a_text_goes_up_to_its_last_letter(grammars: Grammars, text: str) -> None:
    raw = text.encode()
    (constraint,) = grammars.start(compose.text_without([text]), 1)
    assert constraint.enter(b"x " + raw[:-1])
    assert not constraint.enter(raw[-1:])
    assert constraint.enter(b"y")


def test_text_without_nothing_is_any_text(grammars: Grammars) -> None:
    (constraint,) = grammars.start(compose.text_without([]), 1)
    assert constraint.enter("<tool_call>\n/é".encode())
