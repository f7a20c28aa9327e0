"""`/api/embed` and the older `/api/embeddings`, a pure pair each: body in, request out; gathered vectors in,
reply out. An empty input loads the model, as everywhere in this dialect."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema

from llmrun.api.bounds import INT32
from llmrun.api.ollama.bodies import KeepAlive
from llmrun.api.ollama.options import ModelOptions
from llmrun.api.oneline import Json
from llmrun.api.schema import Body, wrong
from llmrun.api.vectors import MAX_INPUTS, Vectors
from llmrun.types import EmbedRequest, Options

_NS = 1_000_000  # in a millisecond


def _inputs(value: object) -> tuple[str, ...]:
    """A text or a list of them; none where it is empty."""
    if value is None or value == "":
        return ()
    if isinstance(value, str):
        return (value,)
    if not isinstance(value, list) or len(value) > MAX_INPUTS:
        raise wrong(f"should be text or a list of at most {MAX_INPUTS} texts")
    for number, item in enumerate(value):
        if not isinstance(item, str):
            raise wrong("should be text", f"{number}")
        if not item:
            raise wrong("should not be empty", f"{number}")
    return tuple(value)


class Embedding(Body):
    """The fields that both routes share."""

    model: Annotated[str, Field(min_length=1, description="a name that `llmrun list` shows")]
    options: Annotated[
        ModelOptions | None, Field(description="`num_ctx` counts; the others steer answers, not vectors")
    ] = None
    keep_alive: KeepAlive = None

    def wanted(self) -> Options:
        return self.options.options() if self.options else Options()


class EmbedBody(Embedding):
    input: Annotated[
        tuple[str, ...],
        PlainValidator(_inputs),
        WithJsonSchema({"type": ["string", "array", "null"], "items": {"type": "string"}}),
        Field(description="text, or a list of texts; empty: the model is only loaded"),
    ] = ()
    truncate: Annotated[
        bool | None,
        Field(description="cut what is longer than the context, and say so in `truncated`; on unless false"),
    ] = None
    dimensions: Annotated[
        int | None, Field(ge=1, le=INT32, description="keep so many leading numbers; default: all")
    ] = None

    def request(self, request_id: str, model: str) -> EmbedRequest:
        return EmbedRequest(
            id=request_id,
            model=model,
            inputs=self.input,
            truncate=self.truncate is not False,
            dimensions=self.dimensions,
            options=self.wanted(),
            keep_alive=self.keep_alive,
        )


class OllamaEmbeddingsBody(Embedding):
    prompt: Annotated[str | None, Field(description="one text; none or empty: the model is only loaded")] = (
        None
    )

    def request(self, request_id: str, model: str) -> EmbedRequest:
        """This route's vectors are not brought to length 1."""
        return EmbedRequest(
            id=request_id,
            model=model,
            inputs=(self.prompt,) if self.prompt else (),
            normalize=False,
            options=self.wanted(),
            keep_alive=self.keep_alive,
        )


def embed_reply(body: EmbedBody, vectors: Vectors) -> Json:
    """The vectors in the order of the input, and durations in nanoseconds."""
    return {
        "model": body.model,
        "embeddings": [each.numbers() for each in vectors.embedded],
        "total_duration": round(vectors.timings.ttft_ms * _NS),
        "load_duration": round(vectors.timings.load_ms * _NS),
        "prompt_eval_count": vectors.usage.prompt,
        **vectors.notice(),
    }


def embeddings_reply(vectors: Vectors) -> Json:
    (only,) = vectors.embedded
    return {"embedding": only.numbers()}
