"""Grammars of llguidance's put together. In and out: what `LLMatcher` takes, Lark or a list of grammars."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from llmrun.chat.lark import Rules


def between(before: str, grammar: str, control: Mapping[str, int]) -> str:
    """`grammar` behind the literal text `before`."""
    if not before:
        return grammar
    rules = Rules(control)
    start = rules.grammar(f"{rules.literal(before)} @answer")
    return json.dumps({"grammars": [{"lark_grammar": start}, {**_only(grammar), "name": "answer"}]})


def text_without(texts: Sequence[str]) -> str:
    """Any text that holds none of `texts`."""
    if not texts:
        return "start: /(?s:.*)/\n"
    ways = "|".join("".join(f"\\x{{{ord(letter):x}}}" for letter in text) for text in texts)
    return f"start: TEXT\nTEXT: /(?s:.*)/ & ~/(?s:.*)({ways})(?s:.*)/\n"


def _only(grammar: str) -> dict[str, object]:
    if not grammar.lstrip().startswith("{"):
        return {"lark_grammar": grammar}
    (found,) = json.loads(grammar)["grammars"]
    return dict(found)
