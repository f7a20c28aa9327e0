"""Requests for vectors and scores: texts to token ids, checked against the model, for the embedder.

In: an EmbedRequest or a RankRequest. Out: a VectorRequest. It knows no threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from llmrun.chat.pair import PairEncoder
from llmrun.engine import VectorRequest
from llmrun.errors import CONTEXT_LENGTH, INVALID_REQUEST, LlmrunError
from llmrun.llama import Model
from llmrun.types import EmbedRequest, RankRequest

_MEANS_RELEVANT = ("yes", "true", "relevant")


@dataclass(frozen=True)
class VectorDesk:
    """One model's. `longest`: tokens of the longest input."""

    name: str
    model: Model
    pairs: PairEncoder
    longest: int

    def embedding(self, request: EmbedRequest, arrived: float) -> VectorRequest:
        """INVALID_REQUEST or CONTEXT_LENGTH, with the field at fault, where there can be no vectors."""
        if self.model.pooling == "rank":
            raise LlmrunError(
                INVALID_REQUEST,
                f"{self.name} ranks documents and makes no vectors",
                hint="use /v1/rerank, or an embedding model",
                field="model",
            )
        size = self.model.embedding_size
        if request.dimensions is not None and not 1 <= request.dimensions <= size:
            raise LlmrunError(
                INVALID_REQUEST,
                f"dimensions is {request.dimensions}, but the vectors of {self.name} have {size}",
                hint=f"ask for 1 to {size}",
                field="dimensions",
            )
        longest = self._longest(request.options.ctx)
        cut = [
            self._cut(self._tokens(text, f"input.{index}"), longest, request.truncate, f"input.{index}")
            for index, text in enumerate(request.inputs)
        ]
        return VectorRequest(
            id=request.id,
            inputs=tuple(np.array(tokens, np.int32) for tokens, _ in cut),
            truncated=tuple(count for _, count in cut),
            arrived=arrived,
            dimensions=request.dimensions,
            normalize=request.normalize,
        )

    def ranking(self, request: RankRequest, arrived: float) -> VectorRequest:
        """The errors of `embedding`."""
        if self.model.pooling != "rank":
            raise LlmrunError(
                INVALID_REQUEST,
                f"{self.name} does not rank documents: it has no classification head",
                hint="use a reranker, or compare embeddings",
                field="model",
            )
        score = score_of(self.model.classes)
        if score is None:
            labels = ", ".join(label or "?" for label in self.model.classes)
            raise LlmrunError(
                INVALID_REQUEST,
                f"{self.name} sorts texts into {labels}, and none of these is how well a document answers",
                hint="use a reranker",
                field="model",
            )
        longest = self._longest(request.options.ctx)
        pairs = [self.pairs.encode(request.query, document) for document in request.documents]
        for index, tokens in enumerate(pairs):
            if len(tokens) > longest:
                raise _too_long(f"documents.{index}, with the query,", f"documents.{index}", tokens, longest)
        return VectorRequest(
            id=request.id,
            inputs=tuple(np.array(tokens, np.int32) for tokens in pairs),
            truncated=(0,) * len(pairs),
            arrived=arrived,
            score=score,
        )

    def _longest(self, ctx: int | None) -> int:
        """A request may want a smaller context than the model was loaded with, and is held to it."""
        return self.longest if ctx is None else min(ctx, self.longest)

    def _tokens(self, given: str | Sequence[int], field: str) -> tuple[list[int], list[int], list[int]]:
        """What goes in front, the input itself, and what goes behind. Token ids are taken as they are."""
        vocab = self.model.vocab
        if isinstance(given, str):
            front, behind = vocab.edges
            tokens = vocab.tokenize(given, special=False)
        else:
            front, behind, tokens = [], [], list(given)
            wrong = next((token for token in tokens if not 0 <= token < vocab.size), None)
            if wrong is not None:
                raise LlmrunError(
                    INVALID_REQUEST,
                    f"{field} holds token {wrong}, but the model's tokens are 0 to {vocab.size - 1}",
                    hint="use this model's own token ids",
                    field=field,
                )
        if not tokens:
            raise LlmrunError(
                INVALID_REQUEST, f"{field} is empty", hint="send at least one word", field=field
            )
        return front, tokens, behind

    def _cut(
        self, parts: tuple[list[int], list[int], list[int]], longest: int, truncate: bool, field: str
    ) -> tuple[list[int], int]:
        """The ids to compute, and how many were cut from the end of the text."""
        front, tokens, behind = parts
        room = longest - len(front) - len(behind)
        if len(tokens) <= room:
            return [*front, *tokens, *behind], 0
        if not truncate or room <= 0:
            raise _too_long(field, field, [*front, *tokens, *behind], longest)
        return [*front, *tokens[:room], *behind], len(tokens) - room


def _too_long(what: str, field: str, tokens: Sequence[int], longest: int) -> LlmrunError:
    return LlmrunError(
        CONTEXT_LENGTH,
        f"{what} has {len(tokens)} tokens, but the context holds {longest}",
        hint="shorten it",
        field=field,
        prompt_tokens=len(tokens),
        context=longest,
    )


def score_of(classes: Sequence[str]) -> int | None:
    """Which of a ranker's numbers says how well a document answers: the only one, or the one whose label
    says so; None where no number does."""
    if len(classes) == 1:
        return 0
    found = [index for index, label in enumerate(classes) if label.strip().lower() in _MEANS_RELEVANT]
    return found[0] if len(found) == 1 else None
