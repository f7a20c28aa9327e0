"""The numbers of a prompt that is too long, as llama-server's clients read them in any dialect."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.errors import CONTEXT_LENGTH, LlmrunError


def context_numbers(error: LlmrunError) -> Json:
    """The fields that an error's object has besides; none where it is of another kind."""
    if error.kind is not CONTEXT_LENGTH:
        return {}
    return {"n_prompt_tokens": error.details.get("prompt_tokens"), "n_ctx": error.details.get("context")}
