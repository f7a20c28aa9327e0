"""Fields that llama-server's clients, its web page among them, send to OpenAI's routes.

Its samplers are in `llmrun.api.options`.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from llmrun.api.bounds import INT32
from llmrun.api.schema import Body, Ignored, Refused


class OfBothRoutes(Body):
    return_progress: Annotated[
        bool | None,
        Field(description="llama.cpp's; `prompt_progress` while the prompt of a stream is computed"),
    ] = None
    cache_prompt: Annotated[bool | None, Ignored("prompts are cached by themselves")] = None
    id_slot: Annotated[int | None, Ignored("answers get their cells by themselves")] = None
    sse_ping_interval: Annotated[int | None, Ignored("a quiet stream gets a comment every few seconds")] = (
        None
    )
    timings_per_token: Annotated[bool | None, Ignored("the last chunk has the timings")] = None
    backend_sampling: Annotated[bool | None, Ignored("where sampling runs changes no answer")] = None


class OfChat(OfBothRoutes):
    thinking_budget_tokens: Annotated[
        int | None,
        Field(ge=-1, le=INT32, description="llama.cpp's; tokens of reasoning at most; −1: no limit"),
    ] = None
    reasoning_format: Annotated[
        object, Refused("reasoning that is left in the content", unless=("auto", "deepseek"))
    ] = None
    continue_final_message: Annotated[
        object, Refused("an answer that does not go on from the assistant's last message", unless=(True,))
    ] = None
    add_generation_prompt: Annotated[bool | None, Ignored("the last message decides it")] = None
    reasoning_control: Annotated[bool | None, Ignored("an answer is ended by hanging up")] = None
