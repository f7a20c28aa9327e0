"""Prompts with places to fill in: `{}` or `{name}`, and `{name.inner}` for a value inside an object.

Pure. All other braces are themselves, so that JSON and code can stand in a template; `{{}}` and `{{name}}`
are the texts `{}` and `{name}`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
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
