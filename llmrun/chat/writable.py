"""Whether a vocabulary can write what a schema wants: some lack bytes of rare characters, and a grammar that
forces one would come to no end. Knows no grammar."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from llmrun.chat.vocab import Vocab
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import OutputFormat, Tool


def check_format(wanted: OutputFormat, vocab: Vocab) -> None:
    """INVALID_REQUEST, naming the field, where a text that the format holds cannot be written."""
    if wanted.kind == "choice":
        _check("".join(wanted.choices), vocab, wanted.field)
    elif wanted.kind == "json_schema":
        _check("".join(_written(json.loads(wanted.text))), vocab, wanted.field)


def check_tools(tools: Sequence[Tool], vocab: Vocab) -> None:
    """The same of the tools' names and schemas."""
    for number, tool in enumerate(tools):
        _check("".join((tool.name, *_written(tool.parameters))), vocab, f"tools.{number}")


def _check(text: str, vocab: Vocab, field: str) -> None:
    for character in sorted({character for character in text if not character.isascii()}):
        if character.encode() not in vocab.detokenize(vocab.tokenize(character, special=False)):
            raise LlmrunError(
                INVALID_REQUEST,
                f"{field} holds the character U+{ord(character):04X}, for which this model's vocabulary "
                "has no tokens",
                hint="leave it out, or use another model",
                field=field,
            )


def _written(schema: Any) -> Iterator[str]:
    """The texts that a value of this schema may hold because the schema has them; notes are none of them."""
    if isinstance(schema, Mapping):
        for key, inner in schema.items():
            if key in ("const", "enum"):
                yield json.dumps(inner, ensure_ascii=False)
            elif key in ("properties", "required"):
                yield from inner if isinstance(inner, Mapping) else filter(_is_text, _list(inner))
            if key not in ("const", "enum", "default", "examples"):
                yield from _written(inner)
    elif isinstance(schema, list):
        for inner in schema:
            yield from _written(inner)


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _is_text(value: Any) -> bool:
    return isinstance(value, str)
