"""`generation_settings`: what a completion was made with, under llama-server's names."""

from __future__ import annotations

import math

from llmrun.api.llamacpp.bodies import Completing
from llmrun.api.oneline import Json
from llmrun.types import GenerateRequest, Options, SamplingParams


def sampling_settings(options: Options) -> Json:
    """The samplers' values in force where `options` are."""
    params = SamplingParams.from_options(options, {})
    values: Json = {
        name: getattr(params, name) for name in params.__struct_fields__ if name not in ("seed", "logit_bias")
    }
    limit = -1 if options.max_tokens is None else options.max_tokens
    return {
        "seed": -1 if options.seed is None else options.seed,
        **values,
        "stop": list(options.stop),
        "max_tokens": limit,
        "n_predict": limit,
        "ignore_eos": bool(options.ignore_eos),
        "min_tokens": options.min_tokens or 0,
        "banned_strings": list(options.banned_strings or ()),
    }


def generation_settings(body: Completing, request: GenerateRequest, lower: Options) -> Json:
    """All of them for one request; `lower` is what its model brings."""
    settings = sampling_settings(request.options.over(lower))
    if body.limit == -1:
        settings["max_tokens"] = settings["n_predict"] = -1
    output = request.output_format
    return {
        **settings,
        "model": request.model,
        "stream": bool(body.stream),
        "logit_bias": [
            {"bias": bias if math.isfinite(bias) else None, "token": token}
            for token, bias in request.logit_bias.items()
        ],
        "n_probs": body.alternatives,
        "n_indent": request.min_indent,
        "grammar": body.grammar or "",
        "json_schema": None if output is None or output.kind == "gbnf" else body.json_schema,
        "timings_per_token": bool(body.timings_per_token),
        "post_sampling_probs": bool(body.post_sampling_probs),
        "lora": [{"id": adapter.id, "scale": adapter.scale} for adapter in request.adapters or ()],
    }
