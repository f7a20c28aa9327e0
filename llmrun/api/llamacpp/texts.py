"""`/tokenize` and `/detokenize`, pure pairs, and the token ids of texts that other bodies hold."""

from __future__ import annotations

from collections.abc import Sequence

from llmrun.api.llamacpp.bodies import DetokenizeBody, TokenizeBody
from llmrun.api.llamacpp.logit_bias import Bias
from llmrun.api.oneline import Json
from llmrun.api.pieces import token_pieces
from llmrun.types import DetokenizeRequest, Event, Tokenized, TokenizeRequest


def tokenize_request(body: TokenizeBody, request_id: str, model: str) -> TokenizeRequest:
    return TokenizeRequest(
        id=request_id,
        model=model,
        text=body.content,
        special=body.parse_special is not False,
        edges=bool(body.add_special),
        pieces=bool(body.with_pieces),
    )


class TokenList:
    """The reply: ids, or ids with their texts; bytes that are no text are given as numbers."""

    def __init__(self, body: TokenizeBody) -> None:
        self._with_pieces = body.with_pieces
        self._tokens: Sequence[object] = []

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Tokenized):
            self._tokens = token_pieces(event) if self._with_pieces else event.tokens

    def body(self) -> Json:
        return {"tokens": self._tokens}


def detokenize_request(body: DetokenizeBody, request_id: str, model: str) -> DetokenizeRequest:
    return DetokenizeRequest(id=request_id, model=model, tokens=tuple(body.tokens))


class BiasOfTokens:
    """The texts of a `logit_bias` looked up: token id → what is added to its logit, over all that name it."""

    def __init__(self, pairs: Sequence[Bias]) -> None:
        self._pairs = pairs
        self._texts = [token for token, _ in pairs if isinstance(token, str)]
        self._ids: dict[int, tuple[int, ...]] = {}

    def requests(self, request_id: str, model: str) -> list[TokenizeRequest]:
        """One for each text, in order."""
        return [
            TokenizeRequest(id=f"{request_id}-bias-{number}", model=model, text=text)
            for number, text in enumerate(self._texts)
        ]

    def add(self, request: int, event: Event) -> None:
        if isinstance(event, Tokenized):
            self._ids[request] = event.tokens

    def body(self) -> dict[int, float]:
        found = iter([self._ids[number] for number in range(len(self._texts))])
        biases: dict[int, float] = {}
        for token, bias in self._pairs:
            for number in next(found) if isinstance(token, str) else (token,):
                biases[number] = biases.get(number, 0.0) + bias
        return biases
