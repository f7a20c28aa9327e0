"""An output format, as a request names it, to a grammar of llguidance's; and its refusals in words.

Knows the notations that formats come in. Knows no tokens and no model.
"""

from __future__ import annotations

import functools
import json
import math
import re
from collections.abc import Sequence

from llguidance import LLMatcher, regex_to_lark

from llmrun.chat import fixed_text, gbnf, json_schema
from llmrun.chat.json_schema import SchemaFault
from llmrun.chat.schema_trial import fault_of
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import OutputFormat

MAX_CHARS = 64 * 1024
MAX_CHOICES = 30_000
_BLANKS = re.compile(r'"(?:[^"\\]|\\.)*"?|\s+', re.DOTALL)
_ANY_OBJECT: json_schema.Schema = {"type": "object"}


def grammar_of(wanted: OutputFormat) -> str:
    """The grammar of a format. INVALID_REQUEST, naming the field, where there can be none.

    May start a process for most of a second; not for a thread that others wait for.
    """
    if wanted.kind == "json_object":
        return json_schema.grammar(_ANY_OBJECT)
    if wanted.kind == "json_schema":
        found = _of_schema(wanted.text)
        if isinstance(found, SchemaFault):
            raise _schema_refused(wanted, found)
        return found
    if wanted.kind == "choice":
        return _choice(wanted)
    if len(wanted.text) > MAX_CHARS:
        raise _refused(wanted, f"is longer than {MAX_CHARS} characters")
    if not wanted.text.strip():
        raise _refused(wanted, "is empty")
    if wanted.kind == "regex":
        lark = f"start: /{regex_to_lark(wanted.text, 'd')}/"
        return _lark(lark, fixed_text.of_pattern(wanted.text))
    if wanted.kind == "lark" and "%json" in wanted.text:
        raise _refused(wanted, "holds %json, which is not supported: send a json_schema")
    lark = wanted.text if wanted.kind == "lark" else _lark_of_gbnf(wanted)
    return _lark(lark, math.inf)  # how much a grammar can force is not known here


def either(wanted: OutputFormat, others: Sequence[json_schema.Schema]) -> str:
    """The grammar of a JSON format, or of JSON by one of `others`. INVALID_REQUEST where it is none."""
    grammar_of(wanted)  # for its refusals
    if wanted.kind not in ("json_object", "json_schema"):
        raise _refused(wanted, "is not JSON, and this model's calls are known only by being JSON")
    schema = _ANY_OBJECT if wanted.kind == "json_object" else json_schema.parse(wanted.text)
    return json_schema.grammar(json_schema.any_of([schema, *others]))


def begun_ways(wanted: OutputFormat, text: str) -> tuple[str, ...]:
    """How a grammar of the format may write the beginning `text` of an answer: JSON's without its blanks."""
    if wanted.kind not in ("json_object", "json_schema"):
        return (text,)
    return (_BLANKS.sub(lambda match: match[0] if match[0].startswith('"') else "", text),)


def not_compiled(wanted: OutputFormat, complaint: str) -> LlmrunError:
    """The error for a grammar that was ready but that llguidance would not compile."""
    what = json_schema.reason(complaint)
    if wanted.kind == "json_schema":
        return _schema_refused(wanted, SchemaFault(what, "#"))
    return _refused(wanted, what)


def _lark(grammar: str, forced: float) -> str:
    if forced > fixed_text.LIMIT:
        grammar += '\n%llguidance {"no_forcing": true}\n'
    return LLMatcher.grammar_from_lark(grammar)


@functools.lru_cache(maxsize=32)
def _of_schema(text: str) -> str | SchemaFault:
    try:
        schema = json_schema.parse(text)
    except SchemaFault as error:
        return error
    if fault := fault_of(text, schema):
        return fault
    forced = fixed_text.of_schema(schema)
    if forced <= fixed_text.LIMIT:
        return json_schema.grammar(schema)
    return _lark(json_schema.lark(schema), forced)


def _lark_of_gbnf(wanted: OutputFormat) -> str:
    try:
        return gbnf.to_lark(wanted.text)
    except gbnf.GbnfFault as fault:
        raise _refused(wanted, f"is not GBNF: {fault}"[:300]) from None


def _choice(wanted: OutputFormat) -> str:
    if not 1 <= len(wanted.choices) <= MAX_CHOICES:
        raise _refused(wanted, f"should hold 1 to {MAX_CHOICES} choices, not {len(wanted.choices)}")
    if not all(wanted.choices):
        raise _refused(wanted, "holds an empty choice")
    words = " | ".join(json.dumps(choice, ensure_ascii=False) for choice in wanted.choices)
    return _lark(f"start: CHOICE\nCHOICE: {words}", max(map(len, wanted.choices)))


def _schema_refused(wanted: OutputFormat, fault: SchemaFault) -> LlmrunError:
    subject = f"{fault.keyword!r} at {fault.pointer}" if fault.keyword else f"at {fault.pointer}"
    return LlmrunError(
        INVALID_REQUEST,
        f"{wanted.field}: the schema {subject} {fault.what}"[:500],
        field=wanted.field,
        pointer=fault.pointer[:500],
        keyword=fault.keyword,
    )


def _refused(wanted: OutputFormat, what: str) -> LlmrunError:
    return LlmrunError(INVALID_REQUEST, f"{wanted.field} {what}", field=wanted.field)
