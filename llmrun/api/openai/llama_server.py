"""Fields that llama-server's clients, its web page and editors' plugins among them, send to OpenAI's routes.

Those that its own routes take as well are in `llmrun.api.llama_fields`, its samplers in `llmrun.api.options`.
"""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal

from pydantic import Field

from llmrun.api.bounds import INT32
from llmrun.api.llama_fields import LlamaFields
from llmrun.api.schema import Body, Ignored, Refused


class OfBothRoutes(LlamaFields):
    response_fields: Annotated[list[str] | None, Ignored("OpenAI's replies always have all their fields")] = (
        None
    )
    verbose: Annotated[bool | None, Ignored("`timings` are always there")] = None


class OfChat(Body):
    limit_names: ClassVar[tuple[str, ...]] = ("max_completion_tokens", "n_predict", "max_tokens")

    thinking_budget_tokens: Annotated[
        int | None,
        Field(ge=-1, le=INT32, description="llama.cpp's; tokens of reasoning at most; −1: no limit"),
    ] = None
    reasoning_format: Annotated[
        Literal["none", "auto", "deepseek", "deepseek-legacy"] | None,
        Field(
            description="llama.cpp's; `none` leaves reasoning in the content, between its tags, "
            "`deepseek-legacy` does so in a stream; `auto` (the default) and `deepseek` tell it apart"
        ),
    ] = None
    continue_final_message: Annotated[
        object, Refused("an answer that does not go on from the assistant's last message", unless=(True,))
    ] = None
    add_generation_prompt: Annotated[bool | None, Ignored("the last message decides it")] = None
    reasoning_control: Annotated[bool | None, Ignored("an answer is ended by hanging up")] = None
