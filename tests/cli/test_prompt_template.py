from __future__ import annotations

import pytest

from llmrun.cli.prompt_template import PromptTemplate
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
