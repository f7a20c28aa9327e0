"""Bodies to requests: what `/api/generate` and `/api/chat` ask of the daemon. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmrun.api.continuing import continuing
from llmrun.api.ollama.bodies import GenerateBody, OllamaChatBody, Sampling
from llmrun.api.ollama.messages import tools_of
from llmrun.api.toolbox import Choice, toolbox
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
        thinking=None if bare else body.think,
        template=body.template or None,
        context=tuple(body.context or ()),
        tokens=not body.raw,
        suffix=body.suffix or None,
        overflow=body.overflow,
        keep_alive=body.keep_alive,
    )


def chat_request(body: OllamaChatBody, request_id: str, name: str) -> GenerateRequest:
    """The next turn of the conversation, or the rest of its last one where that is the assistant's.
    LlmrunError where its messages or tools do not fit together."""
    messages = tuple(message.message() for message in body.messages or ())
    tools, _ = toolbox(tools_of(body.tools), Choice(), None)
    request = GenerateRequest(
        id=request_id,
        model=name,
        messages=messages,
        options=body.sampling(),
        logprobs=body.wants_logprobs,
        output_format=body.format,
        tools=tools,
        thinking=body.think,
        overflow=body.overflow,
        keep_alive=body.keep_alive,
    )
    return continuing(request, last=f"messages.{len(messages) - 1}")


def load_request(body: Sampling, request_id: str, name: str) -> GenerateRequest:
    """The model as the body wants it, for loading alone."""
    return GenerateRequest(
        id=request_id, model=name, prompt="", options=body.sampling(), keep_alive=body.keep_alive
    )
