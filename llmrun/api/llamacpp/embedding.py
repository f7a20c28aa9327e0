"""`/embedding` and `/embeddings` in llama-server's own shape, a pure pair: body in, request out; gathered
vectors in, reply out.

`/v1/embeddings` is OpenAI's, and another shape: clients tell the two apart by the path.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, model_validator

from llmrun.api.bounds import INT32
from llmrun.api.llamacpp.bodies import OfModel
from llmrun.api.llamacpp.prompts import Prompts
from llmrun.api.oneline import Json
from llmrun.api.schema import Refused, unsupported, wrong
from llmrun.api.vectors import Vectors
from llmrun.types import EmbedRequest

NONE, MAX_ABSOLUTE, EUCLIDEAN = -1, 0, 2
INT16_RANGE = 32760.0
"""What the largest number becomes where the largest counts."""


class LlamaEmbeddingBody(OfModel):
    content: Annotated[
        Prompts | None, Field(description="text, token ids (taken as they are), or a list of either")
    ] = None
    input: Annotated[Prompts | None, Field(description="the same, under OpenAI's name")] = None
    embd_normalize: Annotated[
        int | None,
        Field(
            ge=NONE,
            le=INT32,
            description="−1: as the model makes it, 0: the largest number is 32760, 1: the sum of all is 1, "
            "2 (the default): of length 1, above: by that norm",
        ),
    ] = None
    encoding_format: Annotated[
        object, Refused("vectors in another form (see `/v1/embeddings`)", unless=("float",))
    ] = None

    @model_validator(mode="after")
    def _one_input(self) -> LlamaEmbeddingBody:
        if (self.content is None) == (self.input is None):
            raise wrong("is missing" if self.content is None else "is there as input too", "content")
        for number, prompt in enumerate(self.prompts):
            if not prompt:
                raise wrong("should not be empty", f"{self.field}.{number}")
            if isinstance(prompt, tuple) and not all(isinstance(item, int) for item in prompt):
                raise unsupported("texts and ids in turn", f"{self.field}.{number}", hint="send either")
        return self

    @property
    def field(self) -> str:
        return "input" if self.content is None else "content"

    @property
    def prompts(self) -> tuple[str | tuple[int | str, ...], ...]:
        return self.content or self.input or ()

    @property
    def norm(self) -> int:
        return EUCLIDEAN if self.embd_normalize is None else self.embd_normalize


def to_request(body: LlamaEmbeddingBody, request_id: str, model: str) -> EmbedRequest:
    return EmbedRequest(
        id=request_id,
        model=model,
        inputs=body.prompts,  # type: ignore[arg-type]  # ids alone, as was checked
        normalize=body.norm == EUCLIDEAN,
    )


def reply(body: LlamaEmbeddingBody, vectors: Vectors) -> list[Json]:
    """One object for each input, in order; its one vector is a list of one, as there might be one a token."""
    return [
        {"index": each.index, "embedding": [normalized(each.numbers(), body.norm)]}
        for each in vectors.embedded
    ]


def normalized(numbers: list[float], norm: int) -> list[float]:
    """The vector by one of llama.cpp's norms; one that is already of length 1 stays as it is."""
    if norm in (NONE, EUCLIDEAN):
        return numbers
    if norm == MAX_ABSOLUTE:
        size = max(map(abs, numbers), default=0.0) / INT16_RANGE
    else:
        largest = max(map(abs, numbers), default=0.0)  # powers of what is at most 1 cannot overflow
        size = largest * sum((abs(x) / largest) ** norm for x in numbers) ** (1 / norm) if largest else 0.0
    return [x / size if size else 0.0 for x in numbers]
