"""What is left of a request whose key may use models and change nothing. Pure.

In: the request as a client put it. Out: the one that is asked, without a say in what others meet too.
"""

from __future__ import annotations

from typing import TypeVar

import msgspec

from llmrun.types import AnyRequest, DetokenizeRequest, GenerateRequest, RenderRequest, TokenizeRequest

R = TypeVar("R", bound=AnyRequest)


def as_guests(request: R, key_id: str) -> R:
    """The request, for a model as the daemon loads and keeps it. It waits in turn: whatever names and haste
    it claims, all that comes with one key is one asker, and goes before nobody."""
    changes: dict[str, object] = {"keep_alive": None}
    if isinstance(request, TokenizeRequest | RenderRequest):
        changes["prompt"] = request.prompt and as_guests(request.prompt, key_id)
    elif not isinstance(request, DetokenizeRequest):
        changes["options"] = msgspec.structs.replace(request.options, ctx=None)
    if isinstance(request, GenerateRequest):
        changes |= {"client": key_id, "priority": max(0, request.priority)}
    return msgspec.structs.replace(request, **changes)


def template_of(request: AnyRequest) -> str | None:
    """The chat template that a request brings."""
    prompt = request.prompt if isinstance(request, TokenizeRequest | RenderRequest) else request
    return prompt.template if isinstance(prompt, GenerateRequest) else None


def within(request: GenerateRequest, tokens: int, wanted: int | None) -> GenerateRequest:
    """The request, its answers together of at most so many tokens, or of one each. `wanted`: tokens an answer
    would have without that."""
    most = max(1, tokens // request.n)
    if wanted is not None and wanted <= most:
        return request
    options = msgspec.structs.replace(request.options, max_tokens=most)
    return msgspec.structs.replace(request, options=options)
