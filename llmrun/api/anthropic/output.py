"""What is said of the answer itself: how much the model thinks first, and what the text must look like."""

from __future__ import annotations

import json
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, model_validator

from llmrun.api.plain import PlainObject
from llmrun.api.schema import Body, Ignored, Refused, unsupported, wrong
from llmrun.types import Effort, OutputFormat, Thinking

LEAST_BUDGET = 1024


def _no_updates(value: object) -> object:
    if value == "updates":
        raise unsupported("thinking told in updates", hint="send 'summarized' or 'omitted'")
    return value


def _not_between_tools(value: object) -> object:
    if value == "between_tools":
        raise unsupported("thinking between tool calls alone", hint="send 'enabled' or 'disabled'")
    return value


class ThinkingConfig(Body):
    type: Annotated[
        Literal["enabled", "disabled", "adaptive"],
        BeforeValidator(_not_between_tools),
        Field(
            description="`enabled`, `disabled`, or `adaptive`: enabled without a budget; a model that "
            "cannot think answers without"
        ),
    ]
    budget_tokens: Annotated[
        int | None,
        Field(
            ge=LEAST_BUDGET,
            description=f"with `enabled`, required: tokens of thinking at most, from {LEAST_BUDGET}, "
            "less than `max_tokens`",
        ),
    ] = None
    display: Annotated[
        Literal["summarized", "omitted"] | None,
        BeforeValidator(_no_updates),
        Field(description="`omitted` leaves the text of the thinking out; else it is there whole"),
    ] = None
    block_binding: Annotated[object, Ignored("earlier thinking is not checked")] = None

    @model_validator(mode="after")
    def _budget_with_enabled(self) -> ThinkingConfig:
        if (self.type == "enabled") != (self.budget_tokens is not None):
            raise wrong("is wanted with type enabled, and only there", "budget_tokens")
        return self

    def thinking(self, effort: Effort | None) -> Thinking:
        """The same in the daemon's words. Agents send it to every model, so it is a wish."""
        enabled = self.type != "disabled"
        return Thinking(enabled=enabled, effort=effort, budget=self.budget_tokens, wish=True)


class OutputFormatBody(Body):
    type: Annotated[Literal["json_schema"], Field(description="`json_schema`")]
    schema_: Annotated[
        PlainObject,
        Field(alias="schema", description="a keyword that cannot be enforced is an error that names it"),
    ]

    def output_format(self, field: str) -> OutputFormat:
        """The same in the engine's words; `field` is where the schema stands."""
        text = json.dumps(self.schema_, ensure_ascii=False)
        return OutputFormat(kind="json_schema", text=text, field=field)


class OutputConfig(Body):
    effort: Annotated[
        Literal["low", "medium", "high", "xhigh", "max"] | None,
        Field(
            description="of thinking; above `high` is `high` where the template knows no more; a model whose "
            "template knows no effort goes on without"
        ),
    ] = None
    format: Annotated[OutputFormatBody | None, Field(description="the answer keeps to it")] = None
    task_budget: Annotated[object, Refused("a budget that the model is told of")] = None

    def level(self) -> Effort | None:
        return self.effort
