"""`response_format`: what an answer must look like.

`text`, `json_object` and `json_schema` are OpenAI's; `regex`, `grammar` and `choice` are not. Here only
shapes are checked: whether a schema or grammar can be kept to is known where the model is.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator

from llmrun.api.schema import Body, Ignored, wrong
from llmrun.types import OutputFormat

_FIELD = "response_format"


def _schema_text(value: object) -> str:
    if not isinstance(value, dict):
        raise wrong("should be a JSON Schema, an object")
    try:
        return json.dumps(value, ensure_ascii=False)
    except RecursionError:
        raise wrong("is nested too deeply") from None


SchemaText = Annotated[str, PlainValidator(_schema_text), WithJsonSchema({"type": "object"})]


class JsonSchema(Body):
    name: Annotated[
        str | None, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$"), Ignored("a label for the schema")
    ] = None
    description: Annotated[str | None, Ignored("the model is not told of the schema")] = None
    schema_text: Annotated[
        SchemaText,
        Field(alias="schema", description="a keyword that cannot be enforced is an error that names it"),
    ]
    strict: Annotated[bool | None, Field(description="the schema binds in either case")] = None


_BELONGS = {"json_schema": "json_schema", "regex": "regex", "grammar": "grammar", "choice": "choices"}


class ResponseFormat(Body):
    type: Annotated[
        Literal["text", "json_object", "json_schema", "regex", "grammar", "choice"],
        Field(description="`text`, `json_object`, `json_schema`; not OpenAI's: `regex`, `grammar`, `choice`"),
    ]
    json_schema: Annotated[JsonSchema | None, Field(description="with type `json_schema`")] = None
    schema_text: Annotated[
        SchemaText | None,
        Field(
            alias="schema", description="llama.cpp's; with type `json_object` or `json_schema`: in its place"
        ),
    ] = None
    regex: Annotated[str | None, Field(min_length=1, description="not OpenAI's; the whole answer")] = None
    grammar: Annotated[str | None, Field(min_length=1, description="not OpenAI's; see `syntax`")] = None
    syntax: Annotated[
        Literal["gbnf", "lark"] | None,
        Field(description="not OpenAI's; `gbnf` (llama.cpp's, the default) or `lark` (llguidance's)"),
    ] = None
    choices: Annotated[
        list[Annotated[str, Field(min_length=1)]] | None,
        Field(min_length=1, description="not OpenAI's; the answer is one of them"),
    ] = None

    @model_validator(mode="after")
    def _fields_of_the_type(self) -> ResponseFormat:
        wanted = _BELONGS.get(self.type) if self.schema_text is None else "schema_text"
        if self.schema_text is not None and self.type not in ("json_object", "json_schema"):
            raise wrong("is only allowed with type json_object or json_schema", "schema")
        for type_, name in _BELONGS.items():
            if name == wanted and getattr(self, name) is None:
                raise wrong(f"is missing, which type {self.type} needs", name)
            if name != wanted and getattr(self, name) is not None:
                only = f"type {type_}" if self.schema_text is None else "no schema beside it"
                raise wrong(f"is only allowed with {only}", name)
        if self.syntax is not None and self.type != "grammar":
            raise wrong("is only allowed with type grammar", "syntax")
        return self

    def output_format(self) -> OutputFormat | None:
        """The same in the engine's words; None: free text."""
        if self.schema_text is not None:
            return OutputFormat(kind="json_schema", text=self.schema_text, field=f"{_FIELD}.schema")
        if self.json_schema is not None:
            field = f"{_FIELD}.json_schema.schema"
            return OutputFormat(kind="json_schema", text=self.json_schema.schema_text, field=field)
        if self.regex is not None:
            return OutputFormat(kind="regex", text=self.regex, field=f"{_FIELD}.regex")
        if self.grammar is not None:
            kind = self.syntax or "gbnf"
            return OutputFormat(kind=kind, text=self.grammar, field=f"{_FIELD}.grammar")
        if self.choices is not None:
            return OutputFormat(kind="choice", choices=tuple(self.choices), field=f"{_FIELD}.choices")
        return OutputFormat(kind="json_object", field=_FIELD) if self.type == "json_object" else None
