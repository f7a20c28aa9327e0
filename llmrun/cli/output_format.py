"""`--format` and `--schema` as a request's output format."""

from __future__ import annotations

import json
from pathlib import Path

from llmrun.cli.prompt import read_text
from llmrun.errors import USAGE, LlmrunError
from llmrun.types import OutputFormat


def output_format(name: str | None, schema: str | None) -> OutputFormat | None:
    """None: free text. `schema` is a JSON Schema or the file that holds one; it says more than `name`,
    which is `json`. LlmrunError USAGE for anything else; what the schema means is the daemon's to judge."""
    if name not in (None, "json"):
        raise LlmrunError(USAGE, f"--format is {name!r}, which is not known", hint="the only format is json")
    if schema is None:
        return OutputFormat(kind="json_object") if name else None
    inline = schema.lstrip().startswith("{")
    text = schema if inline else read_text(Path(schema))
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        where = "--schema" if inline else schema
        raise LlmrunError(USAGE, f"{where} is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise LlmrunError(
            USAGE, "--schema is not a JSON Schema, an object", hint='such as {"type": "object"}'
        )
    return OutputFormat(kind="json_schema", text=text)
