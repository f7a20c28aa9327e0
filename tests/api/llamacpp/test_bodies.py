from __future__ import annotations

import math
from typing import Any

import pytest

from llmrun.api.llamacpp.bodies import InfillBody, LlamaCompletionBody
from llmrun.api.llamacpp.requests import completion_requests, infill_request
from llmrun.errors import LlmrunError
from llmrun.types import AdapterScale, GenerateRequest, Options, OutputFormat, Snippet

INT32 = 2**31 - 1
# What the two editors' plugins of llama.cpp's authors send (llama.vim, llama.vscode).
VIM: dict[str, Any] = {
    "id_slot": 0,
    "input_prefix": "def f(\n",
    "input_suffix": "\n",
    "input_extra": [{"text": "x = 1", "time": [1, 2], "filename": "a.py"}],
    "prompt": "    ret",
    "n_predict": 128,
    "stop": [],
    "n_indent": 4,
    "top_k": 40,
    "top_p": 0.90,
    "stream": False,
    "samplers": ["top_k", "top_p", "infill"],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 250,
    "response_fields": ["content", "timings/prompt_n", "truncated", "tokens_cached"],
}
VSCODE_WARMS_UP: dict[str, Any] = {
    "input_prefix": "",
    "input_suffix": "",
    "input_extra": [],
    "prompt": "",
    "n_predict": 0,
    "samplers": [],
    "cache_prompt": True,
    "t_max_prompt_ms": 500,
    "t_max_predict_ms": 1,
}


def asked(prompt: object = "Once", **fields: Any) -> list[GenerateRequest]:
    body = LlamaCompletionBody.parse({"prompt": prompt, **fields})
    return completion_requests(body, "r", "m", {})


def only(prompt: object = "Once", **fields: Any) -> GenerateRequest:
    (request,) = asked(prompt, **fields)
    return request


def refused(**fields: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        asked(**fields)
    return caught.value


def test_request_every_field_reaches_it() -> None:
    request = only(
        temperature=0,
        dynatemp_range=0.5,
        mirostat=2,
        dry_multiplier=0.8,
        ignore_eos=True,
        samplers="kt",
        seed=7,
        n_predict=3,
        stop="x",
        n_cmpl=2,
        n_probs=4,
        n_indent=2,
        t_max_predict_ms=250,
        lora=[{"id": 1, "scale": 0.5}],
    )
    assert request == GenerateRequest(
        id="r",
        model="m",
        prompt="Once",
        options=Options(
            temperature=0.0,
            dynatemp_range=0.5,
            mirostat=2,
            dry_multiplier=0.8,
            ignore_eos=True,
            samplers=("top_k", "temperature"),
            seed=7,
            max_tokens=3,
            stop=("x",),
        ),
        n=2,
        logprobs=4,
        tokens=True,
        min_indent=2,
        line_seconds=0.25,
        adapters=(AdapterScale(id=1, scale=0.5),),
    )


@pytest.mark.parametrize(("sent", "used"), [({}, None), ({"seed": -1}, -1), ({"seed": 2**32 - 1}, -1)])
def test_request_seed_that_is_none_is_fresh(sent: dict[str, int], used: int | None) -> None:
    assert only(**sent).options.seed == used


@pytest.mark.parametrize("name", ["n_predict", "max_tokens"])
@pytest.mark.parametrize(("sent", "used"), [(None, None), (-1, INT32), (0, 0), (5, 5)])
def test_request_limit_under_either_name(name: str, sent: int | None, used: int | None) -> None:
    assert only(**{name: sent}).options.max_tokens == used


@pytest.mark.parametrize(
    ("fields", "output"),
    [
        ({"grammar": ""}, None),
        ({"grammar": 'root ::= "a"'}, OutputFormat(kind="gbnf", text='root ::= "a"', field="grammar")),
        ({"json_schema": {}}, OutputFormat(kind="json_object", field="json_schema")),
        (
            {"json_schema": {"type": "null"}},
            OutputFormat(kind="json_schema", text='{"type": "null"}', field="json_schema"),
        ),
    ],
)
def test_request_output_format(fields: dict[str, Any], output: OutputFormat | None) -> None:
    assert only(**fields).output_format == output


def test_request_progress_is_for_streams_that_show_it() -> None:
    assert not only(return_progress=True).progress
    assert only(stream=True, return_progress=True).progress
    timed = only(stream=True, timings_per_token=True)
    assert timed.progress
    assert timed.pace
    assert not only(stream=True).progress
    assert not only(stream=True, return_progress=True).pace


def test_requests_several_prompts_have_ids_of_their_own() -> None:
    assert [(each.id, each.prompt) for each in asked([[1], "b"])] == [("r-0", (1,)), ("r-1", "b")]


def test_infill_request_of_an_editor() -> None:
    request = infill_request(InfillBody.parse(VIM), "r", "m", {})
    assert (request.prompt, request.suffix) == ("def f(\n    ret", "\n")
    assert request.snippets == (Snippet("a.py", "x = 1"),)
    assert request.options.samplers == ("top_k", "top_p", "infill")
    assert (request.min_indent, request.line_seconds) == (4, 0.25)


def test_infill_request_that_only_warms_the_cache() -> None:
    request = infill_request(InfillBody.parse(VSCODE_WARMS_UP), "r", "m", {})
    assert (request.options.max_tokens, request.options.samplers, request.snippets) == (0, (), ())


@pytest.mark.parametrize("extra", [{}, {"filename": "ok"}, {"filename": 1, "text": "a"}, {"text": 4}])
def test_infill_extra_of_another_shape_is_refused(extra: dict[str, Any]) -> None:
    with pytest.raises(LlmrunError) as caught:
        InfillBody.parse({**VIM, "input_extra": [extra]})
    assert str(caught.value.field).startswith("input_extra.0.")


@pytest.mark.parametrize(
    ("fields", "field", "code"),
    [
        ({"sampler_probs": True}, "sampler_probs", "invalid_request"),
        ({"image_data": [{"id": 1}]}, "image_data", "unsupported_field"),
        ({"grammar_lazy": True}, "grammar_lazy", "unsupported_field"),
        ({"n_predict": -2}, "n_predict", "invalid_request"),
        ({"json_schema": 5}, "json_schema", "invalid_request"),
        ({"n_predict": 1, "max_tokens": 2}, "max_tokens", "invalid_request"),
        ({"n_probs": 1, "logprobs": 2}, "logprobs", "invalid_request"),
        ({"grammar": "root ::= x", "json_schema": {}}, "grammar", "invalid_request"),
        ({"stop": [""]}, "stop.0", "invalid_request"),
        ({"temperature": -1}, "temperature", "invalid_request"),
        ({"samplers": "kz"}, "samplers.1", "invalid_request"),
        ({"temprature": 1}, "temprature", "invalid_request"),
        ({"logit_bias": [[1, True]]}, "logit_bias.0.1", "invalid_request"),
    ],
)
def test_body_wrong_or_unbuilt_field_is_named(fields: dict[str, Any], field: str, code: str) -> None:
    error = refused(**fields)
    assert (error.field, error.kind.code) == (field, code)


@pytest.mark.parametrize(("sent", "seconds"), [(None, None), (1, 1), (0, math.inf), (-1, math.inf)])
def test_body_says_how_long_a_stream_may_be_silent(sent: int | None, seconds: float | None) -> None:
    assert LlamaCompletionBody.parse({"prompt": "", "sse_ping_interval": sent}).heartbeat == seconds


def test_body_fields_without_effect_are_taken() -> None:
    only(cache_prompt=False, id_slot=3, n_keep=-1, **{"speculative.n_max": 8}, tfs_z=1.0, image_data=[])
