"""Prompts with places to fill in: `{}` or `{name}`, and `{name.inner}` for a value inside an object.

Pure. All other braces are themselves, so that JSON and code can stand in a template; `{{}}` and `{{name}}`
are the texts `{}` and `{name}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any

from llmrun.errors import USAGE, LlmrunError

_PLACE = re.compile(r"\{(\{)?([A-Za-z_][\w.-]*)?(?(1)\}\}|\})")


class PromptTemplate:
    """`names` are those of its places, each once, in their order; "" is `{}`."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.names = tuple(dict.fromkeys(m[2] or "" for m in _PLACE.finditer(text) if not m[1]))

    def fill(self, whole: str, fields: Mapping[str, Any]) -> str:
        """The prompt: `whole` in the place of `{}`, a field in the place of its name. A text is put in as it
        is, any other value as JSON. LlmrunError USAGE where a field is missing."""

        def value(match: re.Match[str]) -> str:
            if match[1]:
                return match[0][1:-1]
            return _text(_look_up(fields, match[2])) if match[2] else whole

        return _PLACE.sub(value, self.text)


def filled(template: str, pairs: Iterable[str], prompt: str) -> str:
    """A template with `prompt` in the place of `{}`, and `NAME=VALUE` pairs in those of their names.
    LlmrunError USAGE where one of them has no place, or a place has nothing."""
    parsed, values = PromptTemplate(template), {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise LlmrunError(USAGE, f"--var {pair!r} has no value", hint=f"write --var {pair}=VALUE")
        values[name] = value
    known = ", ".join(name or "{}" for name in parsed.names) or "none"
    for name in values:
        if name not in parsed.names:
            raise LlmrunError(USAGE, f"the template has no place {name!r}", hint=f"there are: {known}")
    if prompt and "" not in parsed.names:
        raise LlmrunError(USAGE, "the template has no place for the prompt", hint="put {} where it belongs")
    if not prompt and "" in parsed.names:
        raise LlmrunError(USAGE, "there is no prompt for the {} of the template", hint="write or pipe one")
    return parsed.fill(prompt, values)


def _look_up(fields: Mapping[str, Any], name: str) -> Any:
    """The field of that name; else, of `a.b`, the `b` inside `a`."""
    if name in fields:
        return fields[name]
    found: Any = fields
    for part in name.split("."):
        if not isinstance(found, Mapping) or part not in found:
            there = ", ".join(fields) or "none"
            raise LlmrunError(USAGE, f"there is no field {name!r}", hint=f"there are: {there}")
        found = found[part]
    return found


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
