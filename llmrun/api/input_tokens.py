"""How many tokens a prompt has that an answer to the same body would be given."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Event, GenerateRequest, Tokenized, TokenizeRequest


def to_count(prompt: GenerateRequest) -> TokenizeRequest:
    """The request for the tokens of `prompt`; nothing is generated."""
    return TokenizeRequest(id=prompt.id, model=prompt.model, prompt=prompt)


class InputTokens:
    """The reply: the number, with what a dialect says beside it."""

    def __init__(self, **beside: str) -> None:
        self._beside = beside
        self._tokens = 0

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Tokenized):
            self._tokens = len(event.tokens)

    def body(self) -> Json:
        return {**self._beside, "input_tokens": self._tokens}
