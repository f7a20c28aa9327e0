"""From a checked body to what is asked of the daemon, one request a prompt."""

from __future__ import annotations

from llmrun.api.llamacpp.bodies import Completing, InfillBody, LlamaCompletionBody
from llmrun.types import GenerateRequest, Snippet


def completion_requests(
    body: LlamaCompletionBody, request_id: str, model: str, logit_bias: dict[int, float]
) -> list[GenerateRequest]:
    """One for each prompt, in order."""
    one = len(body.prompt) == 1
    return [
        _request(body, request_id if one else f"{request_id}-{number}", model, logit_bias, prompt=prompt)
        for number, prompt in enumerate(body.prompt)
    ]


def infill_request(
    body: InfillBody, request_id: str, model: str, logit_bias: dict[int, float]
) -> GenerateRequest:
    """The one request for the text between two others."""
    snippets = tuple(Snippet(extra.filename or "tmp", extra.text) for extra in body.input_extra or ())
    return _request(
        body,
        request_id,
        model,
        logit_bias,
        prompt=body.input_prefix + (body.prompt or ""),
        suffix=body.input_suffix,
        snippets=snippets,
    )


def _request(
    body: Completing, request_id: str, model: str, logit_bias: dict[int, float], **prompt: object
) -> GenerateRequest:
    return GenerateRequest(
        id=request_id,
        model=model,
        options=body.options(),
        logit_bias=logit_bias,
        n=body.answers,
        logprobs=body.alternatives or None,
        stages=bool(body.alternatives and (body.post_sampling_probs or body.sampler_probs)),
        output_format=body.llama_format(),
        tokens=True,
        overflow=body.context_overflow or "error",
        **body.wishes(),
        **prompt,  # type: ignore[arg-type]  # the fields that say what the prompt is
    )
