"""How many tokens a prompt has that a response, or a chat completion, of the same body would be given."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Event, GenerateRequest, Tokenized, TokenizeRequest


def to_count(prompt: GenerateRequest) -> TokenizeRequest:
    """The request for the tokens of `prompt`; nothing is generated."""
    return TokenizeRequest(id=prompt.id, model=prompt.model, prompt=prompt)


class InputTokens:
    """The reply, as OpenAI's `/v1/responses/input_tokens` has it."""

    def __init__(self) -> None:
        self._tokens = 0

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Tokenized):
            self._tokens = len(event.tokens)

    def body(self) -> Json:
        return {"object": "response.input_tokens", "input_tokens": self._tokens}
