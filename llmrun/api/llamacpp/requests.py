"""From a checked body to what is asked of the daemon, one request a prompt."""

from __future__ import annotations

import json

from llmrun.api.llamacpp.bodies import Completing, InfillBody, LlamaCompletionBody
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import AdapterScale, GenerateRequest, OutputFormat, Snippet


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
    late = body.t_max_predict_ms or 0
    return GenerateRequest(
        id=request_id,
        model=model,
        options=body.options(),
        logit_bias=logit_bias,
        n=body.answers,
        logprobs=body.alternatives or None,
        output_format=output_format(body),
        tokens=True,
        progress=bool(body.stream and (body.return_progress or body.timings_per_token)),
        min_indent=body.n_indent or 0,
        line_seconds=late / 1e3 if late > 0 else None,
        adapters=_adapters(body),
        overflow=body.context_overflow or "error",
        **prompt,  # type: ignore[arg-type]  # the fields that say what the prompt is
    )


def output_format(body: Completing) -> OutputFormat | None:
    """What the answers must look like; None: free text."""
    if body.grammar:
        return OutputFormat(kind="gbnf", text=body.grammar, field="grammar")
    if body.json_schema is None:
        return None
    if body.json_schema == {}:
        return OutputFormat(kind="json_object", field="json_schema")
    try:
        text = json.dumps(body.json_schema, ensure_ascii=False)
    except RecursionError:
        raise LlmrunError(INVALID_REQUEST, "json_schema is nested too deeply", field="json_schema") from None
    return OutputFormat(kind="json_schema", text=text, field="json_schema")


def _adapters(body: Completing) -> tuple[AdapterScale, ...] | None:
    if body.lora is None:
        return None
    return tuple(AdapterScale(id=adapter.id, scale=adapter.scale) for adapter in body.lora)
