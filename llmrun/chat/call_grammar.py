"""Tools, and how a model writes calls, to the grammars that keep its calls to the tools' schemas."""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from llmrun.chat import fixed_text, json_schema
from llmrun.chat.argument_grammar import arguments
from llmrun.chat.json_schema import Schema, SchemaFault
from llmrun.chat.lark import Rules
from llmrun.chat.schema_trial import fault_of
from llmrun.chat.syntax import Calls, JsonArguments, Slot
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Tool

MAX_CALLS = 16  # of one turn under a grammar: a weak model would go on to the length limit
_ID = "/[a-zA-Z0-9]{9}/"
_INDEX = "/[0-9]{1,3}/"


class _Open(Exception):
    """A tool, not a strict one, whose arguments this form of call has no grammar for."""


@dataclass(frozen=True)
class CallGrammar:
    """Writes grammars for calls of `tools`, or `only` of the one with that name.

    control  spelling -> id of the tokens that no text may spell
    ends     spellings of those that end a generation: the engine's part, not a grammar's
    exact    whether each schema must be kept to, as for a strict tool; else what cannot be is left open
    """

    calls: Calls
    tools: Sequence[Tool]
    control: Mapping[str, int]
    ends: Sequence[str]
    exact: bool
    only: str | None = None

    def whole(self, *, several: bool, primed: str = "") -> str:
        """One call or, where the template knows `several`, more, and nothing else. `primed`: what the prompt
        holds already of the answer."""
        head, lead = self.calls.head, self._lead
        begun = bool(primed.strip()) and head.lstrip().startswith(primed.strip())
        longest = lead + primed if head.startswith(lead + primed) else lead + primed.strip()
        rules = Rules(self.control)
        return rules.grammar(self._calls(rules, several, longest if begun else ""), self._options)

    def or_text(self, *, several: bool) -> str:
        """The same, or text that does not begin as a JSON object does."""
        rules = Rules(self.control)
        text = rules.add("/[^{\\s](?s:.*)/", prefix="T")
        return rules.grammar(f"{text} | {self._calls(rules, several, '')}", self._options)

    def behind(self, *, several: bool) -> dict[str, str | None]:
        """The grammar behind each text that begins a call; None: anything. No text, where only its looks tell
        a call. Calls with a marker for each come one at a time."""
        if not self.calls.marker:
            return {}
        several = several and bool(self.calls.open or self.calls.close)
        ways = {text.strip(): self.calls.head for text in self.calls.also if text.strip()}
        ways[self.calls.marker] = self._lead + self.calls.marker
        found: dict[str, str | None] = {}
        for marker, written in ways.items():
            rules = Rules(self.control)
            try:
                found[marker] = rules.grammar(self._calls(rules, several, written), self._options)
            except _Open:
                found[marker] = None
        return found

    def objects(self) -> list[Schema]:
        """The schemas of the calls, where each is a JSON object."""
        assert self.calls.keys is not None
        found = []
        for index, tool in self._chosen:
            before, after = self.calls.before_arguments(tool.name), self.calls.after_arguments(tool.name)
            text = before + "{}" + after
            sample: dict[str, Any] = json.loads(text[text.index("{") : text.rindex("}") + 1])
            parts: dict[str, Any] = {key: {"const": value} for key, value in sample.items()}
            parts[self.calls.keys.arguments] = self._schema(index, tool)
            found.append(
                {
                    "type": "object",
                    "properties": parts,
                    "required": list(parts),
                    "additionalProperties": False,
                }
            )
        return found

    @property
    def _lead(self) -> str:
        head = self.calls.head
        return head[: len(head) - len(head.lstrip())]

    @property
    def _chosen(self) -> list[tuple[int, Tool]]:
        return [item for item in enumerate(self.tools) if self.only in (None, item[1].name)]

    @property
    def _options(self) -> dict[str, Any] | None:
        forced = max((fixed_text.of_schema(self._schema(*item)) for item in self._chosen), default=0)
        return {"no_forcing": True} if forced > fixed_text.LIMIT else None

    def _calls(self, rules: Rules, several: bool, written: str) -> str:
        """An expression for the calls of a turn, without what is `written` of the first."""
        first, later = [], []
        for index, tool in self._chosen:
            try:
                inside = rules.add(self._arguments(index, tool, rules))
            except SchemaFault as fault:
                raise (_refused(index, tool, fault) if self._strict(tool) else _Open) from None
            first.append(self._call(tool, inside, rules, written, str(self.calls.first_index)))
            later.append(self._call(tool, inside, rules, "", ""))
        start = rules.add(" | ".join(first))
        if several and self.calls.several:
            another = f"({rules.literal(self.calls.separator)} {rules.add(' | '.join(later))})"
            start += f" {another}{{0,{MAX_CALLS - 1}}}"
        return f"{start} {rules.literal(self._ended(self.calls.close))}"

    def _arguments(self, index: int, tool: Tool, rules: Rules) -> str:
        schema, form, strict = self._schema(index, tool), self.calls.arguments, self._strict(tool)
        if (
            not strict
            and not isinstance(form, JsonArguments)
            and schema.get("additionalProperties") is not False
        ):
            raise _Open
        return arguments(form, schema, rules, exact=strict)

    def _call(self, tool: Tool, inside: str, rules: Rules, written: str, index: str) -> str:
        """An expression for one call: the first, of this `index`, without what is `written` of it; or, of no
        index, a later one."""
        plain = self.calls.open if index else ""
        pieces: list[str] = []
        for part in self.calls.call:
            if part is Slot.NAME:
                plain += tool.name
            elif part is Slot.INDEX and index:
                plain += index
            elif isinstance(part, str):
                plain += part
            else:
                pieces += [plain, {Slot.ARGUMENTS: inside, Slot.ID: _ID, Slot.INDEX: _INDEX}[part]]
                plain = ""
        pieces[0] = pieces[0][len(written) :]
        tail = plain if self.calls.close else self._ended(plain)
        texts = [rules.literal(piece) if place % 2 == 0 else piece for place, piece in enumerate(pieces)]
        return " ".join([*texts, rules.literal(tail)])

    def _ended(self, text: str) -> str:
        """`text` without the token that ends the generation in its place."""
        for end in self.ends:
            if end and text.rstrip().endswith(end):
                return text.rstrip().removesuffix(end)
        return text

    def _strict(self, tool: Tool) -> bool:
        return self.exact or tool.strict

    def _schema(self, index: int, tool: Tool) -> Schema:
        found = _checked(json.dumps(tool.parameters))
        if not isinstance(found, SchemaFault):
            return found
        if self._strict(tool):
            raise _refused(index, tool, found)
        return {"type": "object"}


def _refused(index: int, tool: Tool, fault: SchemaFault) -> LlmrunError:
    """The error for a tool whose calls cannot be kept to its schema."""
    subject = f"{fault.keyword!r} at {fault.pointer}" if fault.keyword else f"at {fault.pointer}"
    return LlmrunError(
        INVALID_REQUEST,
        f"tools.{index}: the parameters of {tool.name!r}: {subject} {fault.what}"[:500],
        field=f"tools.{index}",
        pointer=fault.pointer[:500],
        keyword=fault.keyword,
    )


@functools.lru_cache(maxsize=256)
def _checked(text: str) -> Schema | SchemaFault:
    """The schema in `text`, as an object of its own properties; or what keeps it from being kept to."""
    try:
        schema = _closed(json_schema.parse(text))
    except SchemaFault as fault:
        return fault
    return fault_of(json.dumps(schema), schema) or schema


def _closed(schema: Schema) -> Schema:
    """Arguments that the tool does not name are not its arguments."""
    whole: dict[str, Any] = {"type": "object", **schema}
    if schema and "properties" not in schema:
        return whole
    if not {"patternProperties", "anyOf", "allOf", "oneOf", "$ref"} & schema.keys():
        whole.setdefault("additionalProperties", False)
    return whole
