"""Bodies to requests: what `/api/generate` and `/api/chat` ask of the daemon. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmrun.api.ollama.bodies import GenerateBody, OllamaChatBody, OllamaMessage, Sampling
from llmrun.errors import UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import GenerateRequest, Message

if TYPE_CHECKING:
    from llmrun.store import StoredModel


def generate_request(body: GenerateBody, request_id: str, model: StoredModel) -> GenerateRequest:
    """One turn through the chat template; the prompt as it is with `raw` and `suffix`, and where the model
    has none."""
    prompt = body.prompt or ""
    plain = model.kind == "completion" and not (body.template or body.system)
    bare = bool(body.raw or body.suffix) or plain
    system = (Message(role="system", content=body.system),) if body.system else ()
    return GenerateRequest(
        id=request_id,
        model=model.name,
        messages=None if bare else (*system, Message(role="user", content=prompt)),
        prompt=prompt if bare else None,
        options=body.sampling(),
        logprobs=body.wants_logprobs,
        output_format=body.format,
        template_kwargs={} if bare else body.template_variables(),
        template=body.template or None,
        context=tuple(body.context or ()),
        tokens=not body.raw,
        suffix=body.suffix or None,
        keep_alive=body.keep_alive,
    )


def chat_request(body: OllamaChatBody, request_id: str, name: str) -> GenerateRequest:
    """The next turn of the conversation; UNSUPPORTED_FIELD where it asks to continue a reply."""
    messages: Sequence[OllamaMessage] = body.messages or ()
    if messages and messages[-1].role == "assistant":
        field = f"messages.{len(messages) - 1}.role"
        raise LlmrunError(
            UNSUPPORTED_FIELD,
            f"{field} asks to continue a reply of the assistant's, which is not supported yet",
            hint="end with a message of another role",
            field=field,
        )
    return GenerateRequest(
        id=request_id,
        model=name,
        messages=tuple(Message(role=m.role, content=m.content or "") for m in messages),
        options=body.sampling(),
        logprobs=body.wants_logprobs,
        output_format=body.format,
        template_kwargs=body.template_variables(),
        keep_alive=body.keep_alive,
    )


def load_request(body: Sampling, request_id: str, name: str) -> GenerateRequest:
    """The model as the body wants it, for loading alone."""
    return GenerateRequest(
        id=request_id, model=name, prompt="", options=body.sampling(), keep_alive=body.keep_alive
    )
