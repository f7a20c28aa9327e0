"""`/v1/embeddings`, a pure pair: body in, request out; gathered vectors in, reply out."""

from __future__ import annotations

import base64
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from llmrun.api.bounds import INT32
from llmrun.api.oneline import Json
from llmrun.api.openai.prompts import Prompt, prompts
from llmrun.api.schema import Body, Ignored, wrong
from llmrun.api.timings import llama_timings
from llmrun.api.vectors import Vectors
from llmrun.types import Embedded, EmbedRequest, Options


def _inputs(value: object) -> tuple[Prompt, ...]:
    """As prompts, none empty."""
    inputs = prompts(value)
    for number, item in enumerate(inputs):
        if not item:
            raise wrong("should not be empty", "" if isinstance(value, str) else f"{number}")
    return inputs


class EmbeddingsBody(Body):
    model: Annotated[
        str,
        Field(description="a name that `llmrun list` shows; needed where more than one could be meant"),
        BeforeValidator(lambda value: "" if value is None else value),
    ] = ""
    input: Annotated[
        tuple[Prompt, ...],
        PlainValidator(_inputs),
        WithJsonSchema({"type": ["string", "array"], "items": {"type": ["string", "integer", "array"]}}),
        Field(
            description="text, token ids (taken as they are), or a list of either; at most 2,048, none empty"
        ),
    ]
    encoding_format: Annotated[
        Literal["float", "base64"] | None,
        Field(description="`float` (the default), or `base64` of float32, little-endian"),
    ] = None
    dimensions: Annotated[
        int | None, Field(ge=1, le=INT32, description="keep so many leading numbers; default: all")
    ] = None
    truncate: Annotated[
        bool | None,
        Field(description="not OpenAI's; cut what is longer than the context, and say so in `truncated`"),
    ] = None
    ctx: Annotated[
        int | None,
        Field(ge=1, le=INT32, description="not OpenAI's; tokens of context to load the model with"),
    ] = None
    user: Annotated[str | None, Ignored("names the caller")] = None


def to_request(body: EmbeddingsBody, request_id: str) -> EmbedRequest:
    return EmbedRequest(
        id=request_id,
        model=body.model,
        inputs=body.input,
        truncate=bool(body.truncate),
        dimensions=body.dimensions,
        options=Options(ctx=body.ctx),
    )


def reply(body: EmbeddingsBody, vectors: Vectors) -> Json:
    """The vectors in the order of the input, each of length 1."""
    return {
        "object": "list",
        "data": [
            {"object": "embedding", "index": each.index, "embedding": _shown(each, body.encoding_format)}
            for each in vectors.embedded
        ],
        "model": body.model,
        "usage": vectors.tokens(),
        "timings": llama_timings(vectors.usage, vectors.timings),
        **vectors.notice(),
    }


def _shown(embedded: Embedded, encoding_format: str | None) -> object:
    if encoding_format == "base64":
        return base64.b64encode(embedded.vector).decode("ascii")
    return embedded.numbers()
