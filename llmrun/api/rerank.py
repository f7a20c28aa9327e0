"""`/v1/rerank` and `/rerank`, in the shape of Jina's, Cohere's and llama-server's: a pure pair.

A score is the model's own number, as llama-server gives it: higher is better, and its range is the model's.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, PlainValidator, WithJsonSchema

from llmrun.api.bounds import INT32
from llmrun.api.oneline import Json
from llmrun.api.schema import Body, Ignored, Refused, wrong
from llmrun.api.timings import llama_timings
from llmrun.api.vectors import MAX_INPUTS, Vectors
from llmrun.types import Options, RankRequest


def _text(value: object, where: str = "") -> str:
    """A text, or an object whose `text` it is."""
    if isinstance(value, dict) and set(value) == {"text"}:
        value = value["text"]
    if not isinstance(value, str):
        raise wrong("should be text, or an object with `text`", where)
    if not value:
        raise wrong("should not be empty", where)
    return value


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise wrong("should be a list of documents")
    if not 1 <= len(value) <= MAX_INPUTS:
        raise wrong(f"should hold 1 to {MAX_INPUTS} documents, not {len(value)}")
    return tuple(_text(item, f"{number}") for number, item in enumerate(value))


class RerankBody(Body):
    model: Annotated[
        str,
        Field(
            description="a model that ranks; `llmrun list` shows its kind; needed where more than one could "
            "be meant"
        ),
        BeforeValidator(lambda value: "" if value is None else value),
    ] = ""
    query: Annotated[str, BeforeValidator(_text), Field(description="text, or an object with `text`")]
    documents: Annotated[
        tuple[str, ...],
        PlainValidator(_texts),
        WithJsonSchema({"type": "array", "items": {"type": ["string", "object"]}}),
        Field(description="texts, or objects with `text`; at most 2,048, none empty"),
    ]
    top_n: Annotated[
        int | None, Field(ge=1, le=INT32, description="how many of the best to return; default: all")
    ] = None
    return_documents: Annotated[bool | None, Field(description="each result with its document")] = None
    ctx: Annotated[
        int | None, Field(ge=1, le=INT32, description="tokens of context to load the model with")
    ] = None
    user: Annotated[str | None, Ignored("names the caller")] = None
    truncation: Annotated[object, Refused("documents that are cut to fit", unless=(False,))] = None
    max_tokens_per_doc: Annotated[object, Refused("documents that are cut to fit")] = None
    max_chunks_per_doc: Annotated[object, Refused("documents that are ranked in parts")] = None
    rank_fields: Annotated[object, Refused("documents of several fields")] = None
    return_embeddings: Annotated[object, Refused("vectors of a model that ranks", unless=(False,))] = None


def to_request(body: RerankBody, request_id: str) -> RankRequest:
    return RankRequest(
        id=request_id,
        model=body.model,
        query=body.query,
        documents=body.documents,
        options=Options(ctx=body.ctx),
    )


def reply(body: RerankBody, vectors: Vectors, request_id: str) -> Json:
    """The best documents first; those of one score in the order that they were sent in."""
    best = sorted(vectors.ranked, key=lambda each: -each.score)[: body.top_n]
    results: list[Json] = [{"index": each.index, "relevance_score": each.score} for each in best]
    if body.return_documents:
        for result, each in zip(results, best, strict=True):
            result["document"] = {"text": body.documents[each.index]}
    return {
        "id": f"rerank-{request_id.removeprefix('req_')}",
        "object": "list",
        "model": body.model,
        "results": results,
        "usage": vectors.tokens(),
        "timings": llama_timings(vectors.usage, vectors.timings),
    }
