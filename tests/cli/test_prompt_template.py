from __future__ import annotations

import pytest

from llmrun.cli.prompt_template import PromptTemplate, filled
from llmrun.errors import USAGE, LlmrunError


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Say {}", ("",)),
        ("{a} and {b.c}, again {a}", ("a", "b.c")),
        ("nothing", ()),
        ('JSON such as {"a": {"b": 1}} or { }', ()),
        ("{{}} and {{name}}", ()),
        ("{0}", ()),
    ],
)
def test_names_are_those_of_the_places(text: str, names: tuple[str, ...]) -> None:
    assert PromptTemplate(text).names == names


@pytest.mark.parametrize(
    ("text", "filled"),
    [
        ("{}: {name}", "LINE: Ann {x}"),
        ("{age} {tags} {ok}", '7 ["ä", "b"] true'),
        ("{home.city} {dotted.key}", "Bern here"),
        ('{{}} {{name}} {"a": {name}}', '{} {name} {"a": Ann {x}}'),
        ("function() { return {}; }", "function() { return LINE; }"),
    ],
)
def test_fill_puts_in_texts_as_they_are_and_the_rest_as_json(text: str, filled: str) -> None:
    fields = {
        "name": "Ann {x}",
        "age": 7,
        "tags": ["ä", "b"],
        "ok": True,
        "home": {"city": "Bern"},
        "dotted.key": "here",
    }
    assert PromptTemplate(text).fill("LINE", fields) == filled


@pytest.mark.parametrize("name", ["nmae", "name.first", "home.street"])
def test_fill_a_field_that_is_missing_names_those_there_are(name: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        PromptTemplate(f"{{{name}}}").fill("", {"name": "Ann", "home": {}})
    assert caught.value.kind is USAGE
    assert str(caught.value) == f"there is no field {name!r}. there are: name, home"


def test_filled_takes_the_prompt_and_named_values() -> None:
    assert filled("Dear {name}: {}", ["name=Ann=B"], "hi") == "Dear Ann=B: hi"
    assert filled("Dear {name}", ["name="], "") == "Dear "


@pytest.mark.parametrize(
    ("template", "pairs", "prompt", "said"),
    [
        ("{a}", ["a"], "", "--var 'a' has no value. write --var a=VALUE"),
        ("{a}", ["b=1"], "", "the template has no place 'b'. there are: a"),
        ("{a}", [], "", "there is no field 'a'. there are: none"),
        ("{a}", ["a=1"], "hi", "the template has no place for the prompt"),
        ("{}", [], "", "there is no prompt for the {} of the template"),
    ],
)
def test_filled_refuses_what_does_not_fit(template: str, pairs: list[str], prompt: str, said: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        filled(template, pairs, prompt)
    assert caught.value.kind is USAGE
    assert str(caught.value).startswith(said)
