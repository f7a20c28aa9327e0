"""`grammar` and `json_schema`, llama-server's own names for what an answer must look like."""

from __future__ import annotations

import json
from typing import Annotated

from pydantic import Field, model_validator

from llmrun.api.schema import Body, wrong
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import OutputFormat


class LlamaFormat(Body):
    """The two fields, of which one may bind the answer."""

    grammar: Annotated[str | None, Field(description="llama.cpp's; in GBNF; binds the answer")] = None
    json_schema: Annotated[
        dict[str, object] | bool | None,
        Field(description="llama.cpp's; binds the answer; `{}` is any object"),
    ] = None

    @model_validator(mode="after")
    def _one_format(self) -> LlamaFormat:
        if self.grammar and self.json_schema is not None:
            raise wrong("and json_schema cannot both bind the answer: send one", "grammar")
        return self

    def llama_format(self) -> OutputFormat | None:
        """What the answers must look like; None: neither field says. INVALID_REQUEST."""
        if self.grammar:
            return OutputFormat(kind="gbnf", text=self.grammar, field="grammar")
        if self.json_schema is None:
            return None
        if self.json_schema == {}:
            return OutputFormat(kind="json_object", field="json_schema")
        try:
            text = json.dumps(self.json_schema, ensure_ascii=False)
        except RecursionError:
            what = "json_schema is nested too deeply"
            raise LlmrunError(INVALID_REQUEST, what, field="json_schema") from None
        return OutputFormat(kind="json_schema", text=text, field="json_schema")
