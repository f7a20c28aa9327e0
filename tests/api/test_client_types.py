"""Whatever the official clients' own types allow is taken, ignored as documented, or refused by name: a body
is made for each field, each shape and each word in the types of their requests. A new one fails here."""

from __future__ import annotations

from typing import Any

import ollama._types as llama
import pytest
from anthropic.types import message_count_tokens_params as count_params
from anthropic.types import message_create_params as message_params
from anthropic.types.beta import message_count_tokens_params as beta_count_params
from anthropic.types.beta import message_create_params as beta_message_params
from openai.types import completion_create_params as completion_params
from openai.types import embedding_create_params as embedding_params
from openai.types.chat import completion_create_params as chat_params
from openai.types.responses import input_token_count_params as input_token_params
from openai.types.responses import response_create_params as response_params
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from llmrun.api.fields import BODIES
from llmrun.api.schema import UNSUPPORTED
from tests.api.client_types import TEXT, fields, samples

HI = [{"role": "user", "content": "Hi"}]
NAMED = {"model": "m"}
TYPES: list[tuple[str, Any, dict[str, Any]]] = [
    ("/v1/chat/completions", chat_params.CompletionCreateParamsNonStreaming, {**NAMED, "messages": HI}),
    ("/v1/chat/completions", chat_params.CompletionCreateParamsStreaming, {**NAMED, "messages": HI}),
    ("/v1/completions", completion_params.CompletionCreateParamsNonStreaming, {**NAMED, "prompt": "Hi"}),
    ("/v1/completions", completion_params.CompletionCreateParamsStreaming, {**NAMED, "prompt": "Hi"}),
    ("/v1/responses", response_params.ResponseCreateParamsNonStreaming, {**NAMED, "input": "Hi"}),
    ("/v1/responses", response_params.ResponseCreateParamsStreaming, {**NAMED, "input": "Hi"}),
    ("/v1/responses/input_tokens", input_token_params.InputTokenCountParams, {**NAMED, "input": "Hi"}),
    ("/v1/embeddings", embedding_params.EmbeddingCreateParams, {**NAMED, "input": "Hi"}),
    ("/v1/messages", message_params.MessageCreateParamsStreaming, {**NAMED, "messages": HI, "max_tokens": 9}),
    (
        "/v1/messages",
        beta_message_params.MessageCreateParamsStreaming,
        {**NAMED, "messages": HI, "max_tokens": 9},
    ),
    ("/v1/messages/count_tokens", count_params.MessageCountTokensParams, {**NAMED, "messages": HI}),
    ("/v1/messages/count_tokens", beta_count_params.MessageCountTokensParams, {**NAMED, "messages": HI}),
    ("/api/generate", llama.GenerateRequest, NAMED),
    ("/api/chat", llama.ChatRequest, NAMED),
    ("/api/embed", llama.EmbedRequest, {**NAMED, "input": "Hi"}),
    ("/api/embeddings", llama.EmbeddingsRequest, {**NAMED, "prompt": "Hi"}),
    ("/api/show", llama.ShowRequest, NAMED),
    ("/api/pull", llama.PullRequest, NAMED),
    ("/api/create", llama.CreateRequest, {**NAMED, "from": "n"}),
    ("/api/copy", llama.CopyRequest, {"source": "m", "destination": "n"}),
    ("/api/delete", llama.DeleteRequest, NAMED),
]
ELSEWHERE = {"betas": "the client sends it as a header", "from_": "the client sends it as `from`"}
UNKNOWN = ("is not a known field", "should be one of")


def misunderstood(error: ErrorDetails) -> bool:
    """Whether this says that the client's word, shape or field is none at all. That a text is not the one
    that was wanted, or something else is missing, says nothing of the kind."""
    told = error["msg"]
    if error["input"] in (None, TEXT):
        return False
    return any(words in told for words in UNKNOWN) or error["type"].endswith(("_type", "literal_error"))


def found_wrong(route: str, body: dict[str, Any]) -> list[str]:
    try:
        BODIES[route].model_validate(body)
    except ValidationError as failed:
        errors = failed.errors(include_url=False)
        if not any(error["type"] == UNSUPPORTED for error in errors):
            return [f"{error['loc']}: {error['msg']}" for error in errors if misunderstood(error)]
    return []


@pytest.mark.parametrize(
    ("route", "kind", "least"), TYPES, ids=[f"{route} {kind.__name__}" for route, kind, _ in TYPES]
)
def test_every_value_of_the_clients_types_is_understood(route: str, kind: Any, least: Any) -> None:
    tried, wrong = 0, set()
    for name, (hint, _) in fields(kind).items():
        for value in samples(hint) if name not in ELSEWHERE else ():
            tried += 1
            wrong.update(found_wrong(route, {**least, name: value}))
    assert tried >= len(fields(kind)) - len(ELSEWHERE)
    assert not wrong
