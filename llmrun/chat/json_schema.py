"""Which JSON Schemas can be kept to, and where one that cannot is at fault.

llguidance enforces what it knows of JSON Schema, says no to most of what it does not, and names no
place. Here every keyword is looked at before it is compiled, so that none is passed over in silence;
and a complaint of llguidance's is traced to the part of the schema that causes it.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from llguidance import LLMatcher

Schema = dict[str, Any]

MAX_BYTES = 2**20
MAX_VALUES = 30_000  # numbers, strings, lists, objects: llguidance takes half a second for so many
MAX_DEPTH = 100  # its parser's own limit is 128, less what stands around the schema

# By what lies below them (JSON Schema 2020-12, and 2019-09's spelling of definitions and tuples)
_MAPS = frozenset({"properties", "patternProperties", "$defs", "definitions"})
_LISTS = frozenset({"anyOf", "allOf", "oneOf", "prefixItems", "items"})
_ONE = frozenset({"items", "additionalProperties"})
_VALUES = {
    *("type", "enum", "const", "$ref", "$schema", "$id", "$anchor", "required", "pattern", "format"),
    *("minProperties", "maxProperties", "minItems", "maxItems", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
}
_NOTES = {
    *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly", "$comment"),
    *("contentEncoding", "contentMediaType", "contentSchema", "discriminator"),
}
HONOURED = _MAPS | _LISTS | _ONE | _VALUES
_BOUNDS = tuple((f"min{what}", f"max{what}") for what in ("Length", "Items", "Properties", "imum"))

# Compact, so that between the parts a grammar decides all that is not a value; nothing is passed over.
_OPTIONS: Any = {"whitespace_flexible": False, "lenient": False, "coerce_one_of": False}
_MOST_TRIALS = 300


@dataclass
class SchemaFault(Exception):
    """What is wrong, with which keyword (None: the schema there as a whole), at which JSON pointer."""

    what: str
    pointer: str
    keyword: str | None = None


def parse(text: str) -> Schema:
    """The schema in `text`. SchemaFault where it is none, is too large, or uses an unknown keyword."""
    if len(text) > MAX_BYTES:
        raise SchemaFault(f"is larger than {MAX_BYTES // 1024} KiB", "#")
    try:
        schema = msgspec.json.decode(text)
    except RecursionError:
        raise SchemaFault(f"is nested more than {MAX_DEPTH} deep", "#") from None
    except msgspec.DecodeError as error:
        raise SchemaFault(f"is not JSON: {error}", "#") from None
    if not isinstance(schema, dict):
        raise SchemaFault("is not an object", "#")
    count_values(schema)
    for pointer, part in parts(schema):
        _check_keywords(part, pointer)
    return schema


def grammar(schema: Schema) -> str:
    """The schema as a grammar of llguidance's; whether that compiles is not known yet."""
    return LLMatcher.grammar_from_json_schema(json.dumps(schema), overrides=_OPTIONS)


def lark(schema: Schema) -> str:
    """The same as a grammar in Lark, which can carry options."""
    return f"start: %json {json.dumps({**schema, 'x-guidance': _OPTIONS})}"


def any_of(schemas: Sequence[Schema]) -> Schema:
    """A schema of what any of `schemas` allows; each keeps its own definitions."""
    defs = {str(index): _moved(schema, f"#/$defs/{index}") for index, schema in enumerate(schemas)}
    return {"anyOf": [{"$ref": f"#/$defs/{name}"} for name in defs], "$defs": defs}


def _moved(part: Any, root: str) -> Any:
    """`part` with its references to the document's root pointing to `root`."""
    if isinstance(part, list):
        return [_moved(item, root) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: root + value[1:]
        if key == "$ref" and isinstance(value, str) and value.startswith("#")
        else _moved(value, root)
        for key, value in part.items()
    }


def locate(schema: Schema) -> SchemaFault | None:
    """What llguidance says to the schema, at the innermost part that makes it say so. None: nothing."""
    complaint = _complaint(schema, schema)
    if not complaint:
        return None
    pointer, part, trials = "#", schema, _MOST_TRIALS
    searching = True
    while searching:
        searching = False
        for step, child in _children(part):
            trials -= 1
            if trials >= 0 and _is_cause(said := _complaint(child, schema), complaint):
                pointer, part, complaint, searching = f"{pointer}/{step}", child, said, True
                break
    return SchemaFault(reason(complaint), pointer, _keyword(part, schema, complaint))


def _is_cause(inner: str, outer: str) -> bool:
    """Whether a complaint about a part is why there is one about the whole."""
    unsatisfiable = "Unsatisfiable schema: "
    required = f"{unsatisfiable}required property"
    return inner == outer or (outer.startswith(required) and inner.startswith(unsatisfiable))


def reason(complaint: str) -> str:
    """llguidance's complaint in a line: of a pattern, the regex parser's own last word."""
    lines = complaint.splitlines() or [""]
    if lines[0].startswith("panic"):
        return "is more than llguidance can compile"
    if "NoExtensionBias" in complaint:
        return "cannot be compiled: no text matches all of it"
    last = [line.removeprefix("error: ") for line in lines if line.startswith("error: ")]
    return f"cannot be compiled: {(last or lines)[0][:200]}"


def count_values(schema: Schema) -> int:
    """Numbers, strings, lists and objects in it. SchemaFault past `MAX_VALUES` or `MAX_DEPTH`.

    Breadth first, so that no depth of nesting exhausts the stack.
    """
    level: list[object] = [schema]
    seen = depth = 0
    while level:
        seen += len(level)
        depth += 1
        if seen > MAX_VALUES:
            raise SchemaFault(f"has more than {MAX_VALUES} values", "#")
        if depth > MAX_DEPTH:
            raise SchemaFault(f"is nested more than {MAX_DEPTH} deep", "#")
        level = [
            inner
            for value in level
            if isinstance(value, dict | list)
            for inner in (value.values() if isinstance(value, dict) else value)
        ]
    return seen


def parts(schema: Schema) -> Iterator[tuple[str, Schema]]:
    """Every schema inside, with its pointer, outer ones first."""
    todo = [("#", schema)]
    while todo:
        pointer, part = todo.pop()
        yield pointer, part
        todo += [(f"{pointer}/{step}", child) for step, child in _children(part)]


def _children(part: Schema) -> Iterator[tuple[str, Schema]]:
    for keyword, value in part.items():
        inner: dict[str, object] = {}
        if keyword in _MAPS and isinstance(value, dict):
            inner = {f"{keyword}/{_escaped(name)}": child for name, child in value.items()}
        elif keyword in _LISTS and isinstance(value, list):
            inner = {f"{keyword}/{index}": child for index, child in enumerate(value)}
        elif keyword in _ONE:
            inner = {keyword: value}
        for step, child in inner.items():
            if isinstance(child, dict):
                yield step, child


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1")


def _check_keywords(part: Schema, pointer: str) -> None:
    for keyword, value in part.items():
        known = keyword in HONOURED or keyword in _NOTES or keyword.startswith("x-")
        if not known or keyword == "x-guidance":
            near = difflib.get_close_matches(keyword, HONOURED, n=1, cutoff=0.8)
            raise SchemaFault(
                f"is not supported{f'; did you mean {near[0]!r}?' if near else ''}", pointer, keyword
            )
        if keyword in ("exclusiveMinimum", "exclusiveMaximum") and isinstance(value, bool):
            raise SchemaFault("should be a number", pointer, keyword)
        if keyword in _VALUES and _is_inexact(value):
            raise SchemaFault("holds a number that needs more than 15 digits or 22 zeros", pointer, keyword)
    for low, high in _BOUNDS:
        least, most = part.get(low), part.get(high)
        if isinstance(least, int | float) and isinstance(most, int | float) and least > most:
            raise SchemaFault(f"is {least}, but {high} is {most}", pointer, low)


def _is_inexact(value: object) -> bool:
    """Whether a number in `value` may not come out as it went in.

    llguidance reads numbers as doubles, and exactly only where 15 digits times or by a power of ten up to
    10^22 suffice.
    """
    if isinstance(value, dict | list):
        return any(map(_is_inexact, value.values() if isinstance(value, dict) else value))
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return bool(value) and (not 1e-7 <= abs(value) <= 1e22 or float(f"{value:.15g}") != value)


def _complaint(part: Schema, root: Schema) -> str:
    """What llguidance says to a part of the schema alone, beside the root's definitions."""
    shared: Schema = {name: root[name] for name in ("$defs", "definitions") if name in root}
    return LLMatcher.validate_grammar(grammar({**shared, **part}))


def _keyword(part: Schema, root: Schema, complaint: str) -> str | None:
    """The keyword without which llguidance would not say this of `part`."""
    for keyword in sorted(part, key=lambda keyword: keyword not in complaint):  # one it speaks of first
        rest = {name: value for name, value in part.items() if name != keyword}
        if keyword not in ("$defs", "definitions") and _complaint(rest, root) != complaint:
            return keyword
    return None
