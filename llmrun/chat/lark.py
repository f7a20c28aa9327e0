"""Writing grammars in llguidance's dialect of Lark: rules, and literal texts that may hold control tokens.

https://github.com/guidance-ai/llguidance/blob/main/docs/syntax.md
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

# As models write JSON, and as templates render it: a space behind a comma and a colon, no other.
SPACED: Any = {
    "whitespace_flexible": False,
    "lenient": False,
    "coerce_one_of": False,
    "item_separator": ", ",
    "key_separator": ": ",
}


class Rules:
    """Collects the rules of one grammar.

    control  spelling -> id of the tokens that no text may spell
    """

    def __init__(self, control: Mapping[str, int]) -> None:
        self._control = control
        spellings = sorted(filter(None, control), key=len, reverse=True)
        self._token = re.compile("|".join(map(re.escape, spellings)) or r"(?!)")
        self._rules: list[str] = []

    def add(self, body: str, *, prefix: str = "r", options: str = "") -> str:
        """A new rule or, by an upper-case prefix, terminal; its name."""
        name = f"{prefix}{len(self._rules)}"
        self._rules.append(f"{name}{options}: {body}")
        return name

    def literal(self, text: str) -> str:
        """An expression for exactly `text`; "" for no text."""
        pieces: list[str] = []
        end = 0
        for match in self._token.finditer(text):
            pieces += [_quoted(text[end : match.start()]), f"<[{self._control[match[0]]}]>"]
            end = match.end()
        pieces.append(_quoted(text[end:]))
        return " ".join(filter(None, pieces))

    def json(self, schema: Mapping[str, Any]) -> str:
        """A rule for JSON by `schema`."""
        return self.add(f"%json {json.dumps({**schema, 'x-guidance': SPACED})}", prefix="json")

    def until(self, text: str, pattern: str = "(?s:.*)") -> str:
        """A rule for text that matches `pattern` up to the first `text`, which comes with it."""
        end = self.literal(text)
        if "<[" in end:  # where control tokens stand, no text can go on past them
            return self.add(f"{self.add(f'/{pattern}/', prefix='T')} {end}")
        return self.add(f"/{pattern}/ {end}", options="[lazy]")

    def grammar(self, start: str, options: Mapping[str, Any] | None = None) -> str:
        """The whole, beginning with expression `start`."""
        extra = [f"%llguidance {json.dumps(options)}"] if options else []
        return "\n".join([f"start: {start}", *self._rules, *extra]) + "\n"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False) if text else ""
