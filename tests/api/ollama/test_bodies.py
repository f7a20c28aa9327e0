from __future__ import annotations

import json
import math
from typing import Any

import pytest

from llmrun.api.bounds import INT32
from llmrun.api.ollama.bodies import GenerateBody, OllamaChatBody
from llmrun.api.ollama.options import ModelOptions
from llmrun.errors import INVALID_REQUEST, UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import Options, OutputFormat, Thinking


def refused(body: type[Any], **fields: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        body.parse({"model": "tiny:1m", **fields})
    return caught.value


def options(**fields: Any) -> Options:
    return ModelOptions.parse(fields).options()


def test_options_every_honoured_name_reaches_the_request() -> None:
    assert options(
        num_predict=8,
        num_ctx=1024,
        temperature=0,
        top_k=3,
        top_p=0.5,
        min_p=0.1,
        typical_p=0.9,
        repeat_last_n=-1,
        repeat_penalty=1.1,
        presence_penalty=1.5,
        frequency_penalty=-0.3,
        seed=7,
        stop=["\n", "user:"],
    ) == Options(
        max_tokens=8,
        ctx=1024,
        temperature=0.0,
        top_k=3,
        top_p=0.5,
        min_p=0.1,
        typical_p=0.9,
        repeat_last_n=-1,
        repeat_penalty=1.1,
        presence_penalty=1.5,
        frequency_penalty=-0.3,
        seed=7,
        stop=("\n", "user:"),
    )


def test_options_none_set_leave_everything_to_the_model() -> None:
    assert options() == options(stop=[], num_predict=None) == Options()


@pytest.mark.parametrize(("given", "limit"), [(-1, INT32), (-2, INT32), (0, 0), (5, 5), (5.0, 5)])
def test_options_num_predict_negative_beats_a_limit_of_the_model(given: float, limit: int) -> None:
    assert options(num_predict=given).over(Options(max_tokens=3)).max_tokens == limit


def test_options_stop_may_be_one_text() -> None:
    assert options(stop="###").stop == ("###",)


def test_options_that_only_tune_speed_are_taken() -> None:
    speed = {"num_keep": 5, "num_batch": 2, "num_gpu": 1, "main_gpu": 0, "low_vram": False, "numa": False}
    speed |= {"use_mmap": True, "use_mlock": False, "num_thread": 8, "vocab_only": False, "f16_kv": True}
    assert options(penalize_newline=True, tfs_z=1.0, **speed) == Options()


@pytest.mark.parametrize(
    ("name", "value"),
    [("tfs_z", 0.5), ("penalize_newline", False), ("vocab_only", True)],
)
def test_options_that_would_change_the_answer_are_refused_by_name(name: str, value: object) -> None:
    error = refused(GenerateBody, options={name: value})
    assert (error.kind, error.field) == (UNSUPPORTED_FIELD, f"options.{name}")


def test_options_unknown_name_is_an_error_that_names_the_nearest() -> None:
    error = refused(GenerateBody, options={"num_predicts": 5})
    assert (error.kind, error.field) == (INVALID_REQUEST, "options.num_predicts")
    assert "'num_predict'" in error.hint


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("num_predict", -3),
        ("num_predict", 1.5),
        ("num_predict", "8"),
        ("num_ctx", 0),
        ("temperature", -1),
        ("temperature", "hot"),
        ("top_p", 1.5),
        ("top_k", -1),
        ("repeat_penalty", 0),
        ("stop", [""]),
        ("stop", ""),
        ("seed", True),
    ],
)
def test_options_wrong_value_is_an_error_that_names_it(name: str, value: object) -> None:
    error = refused(GenerateBody, options={name: value})
    assert error.kind is INVALID_REQUEST
    assert (error.field or "").startswith(f"options.{name}")


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        (None, None),
        (0, 0.0),
        ("0", 0.0),
        (300, 300.0),
        (0.5, 0.5),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("250ms", 0.25),
        (-1, math.inf),
        ("-1", math.inf),
        ("-1m", math.inf),
        (1e300, math.inf),
    ],
)
def test_keep_alive_in_every_form(given: object, seconds: float | None) -> None:
    assert GenerateBody.parse({"model": "m", "keep_alive": given}).keep_alive == seconds


@pytest.mark.parametrize("given", ["soon", "", "-", "-x", "5 minutes", True, [5], {}])
def test_keep_alive_that_is_no_time_is_an_error(given: object) -> None:
    error = refused(GenerateBody, keep_alive=given)
    assert (error.kind, error.field) == (INVALID_REQUEST, "keep_alive")


@pytest.mark.parametrize(
    ("body", "fields"),
    [
        (GenerateBody, {"images": ["iVBORw0KGgo="]}),
    ],
)
def test_fields_not_built_are_refused_by_name(body: type[Any], fields: dict[str, object]) -> None:
    error = refused(body, **fields)
    assert (error.kind, error.field) == (UNSUPPORTED_FIELD, next(iter(fields)))


def test_fields_that_ask_for_nothing_are_taken() -> None:
    GenerateBody.parse(
        {"model": "m", "suffix": "", "images": [], "context": [], "format": "", "shift": False}
    )
    OllamaChatBody.parse({"model": "m", "tools": [], "format": None, "truncate": False})


@pytest.mark.parametrize("body", [GenerateBody, OllamaChatBody])
def test_format_in_every_form(body: type[Any]) -> None:
    def read(value: object) -> OutputFormat | None:
        found: OutputFormat | None = body.parse({"model": "m", "format": value}).format
        return found

    assert read(None) is read("") is None
    assert read("json") == OutputFormat(kind="json_object", field="format")
    schema = {"type": "object", "properties": {"größe": {"type": "integer"}}}
    found = read(schema)
    assert found is not None
    assert (found.kind, found.field, json.loads(found.text)) == ("json_schema", "format", schema)


@pytest.mark.parametrize("given", ["yaml", True, 5, [], ["json"]])
def test_format_that_is_none_is_an_error(given: object) -> None:
    error = refused(GenerateBody, format=given)
    assert (error.kind, error.field) == (INVALID_REQUEST, "format")


def test_template_written_for_go_becomes_jinja() -> None:
    go = "{{ if .System }}{{ .System }}\n{{ end }}{{ .Prompt }}"
    template = GenerateBody.parse({"model": "m", "template": go}).template
    assert template is not None
    assert "{%" in template
    assert GenerateBody.parse({"model": "m", "template": "{{ x }}"}).template == "{{ x }}"


@pytest.mark.parametrize(
    "template", ["{{ .Secret }}", "{{ if .System }}", "{{ if .System }}" * 9000, "x" * 300_000]
)
def test_template_that_has_no_twin_is_an_error(template: str) -> None:
    error = refused(GenerateBody, template=template)
    assert (error.kind, error.field) == (INVALID_REQUEST, "template")


@pytest.mark.parametrize("fields", [{"system": "y"}, {"template": "y"}, {"context": [1]}])
def test_raw_takes_no_template(fields: dict[str, Any]) -> None:
    error = refused(GenerateBody, prompt="x", raw=True, **fields)
    assert (error.kind, error.field) == (INVALID_REQUEST, next(iter(fields)))


@pytest.mark.parametrize("fields", [{"system": "y"}, {"template": "y"}, {"context": [1]}, {"raw": True}])
def test_suffix_takes_no_template(fields: dict[str, Any]) -> None:
    error = refused(GenerateBody, prompt="x", suffix="z", **fields)
    assert (error.kind, error.field) == (INVALID_REQUEST, next(iter(fields)))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        (None, None),
        (True, Thinking(enabled=True, field="think")),
        (False, Thinking(enabled=False, field="think")),
        ("high", Thinking(enabled=True, effort="high", field="think")),
    ],
)
def test_think_in_every_form(given: object, wanted: Thinking | None) -> None:
    assert OllamaChatBody.parse({"model": "m", "think": given}).think == wanted


@pytest.mark.parametrize("given", [1, "much", "", []])
def test_think_that_is_none_is_an_error(given: object) -> None:
    error = refused(OllamaChatBody, think=given)
    assert (error.kind, error.field) == (INVALID_REQUEST, "think")


@pytest.mark.parametrize("fields", [{"raw": True}, {"suffix": "z"}])
def test_think_without_a_template_is_an_error(fields: dict[str, Any]) -> None:
    assert refused(GenerateBody, prompt="x", think=True, **fields).field == "think"
    assert GenerateBody.parse({"model": "m", "prompt": "x", "think": False, **fields}).think


TOOL = {"type": "function", "function": {"name": "look"}}


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ([{"type": "web"}], "tools.0.type"),
        ([{"type": "function"}], "tools.0.function"),
        ([{"function": {"name": ""}}], "tools.0.function.name"),
        ([{"function": {"name": "f", "parameters": []}}], "tools.0.function.parameters"),
        ({"look": TOOL}, "tools"),
    ],
)
def test_tools_that_cannot_be_taken_are_named(tools: object, field: str) -> None:
    error = refused(OllamaChatBody, tools=tools)
    assert (error.kind, error.field) == (INVALID_REQUEST, field)


@pytest.mark.parametrize("given", [[-1], ["a"], [1.5], "1", [2**40]])
def test_context_that_holds_no_token_ids_is_an_error(given: object) -> None:
    error = refused(GenerateBody, context=given)
    assert error.kind is INVALID_REQUEST
    assert (error.field or "").startswith("context")


@pytest.mark.parametrize(
    ("message", "kind", "field"),
    [
        ({"role": "robot", "content": "4"}, INVALID_REQUEST, "messages.0.role"),
        ({"content": "4"}, INVALID_REQUEST, "messages.0.role"),
        ({"role": "user", "content": [{"type": "text"}]}, INVALID_REQUEST, "messages.0.content"),
        ({"role": "user", "images": ["x"]}, UNSUPPORTED_FIELD, "messages.0.images"),
        (
            {"role": "assistant", "tool_calls": [{}]},
            INVALID_REQUEST,
            "messages.0.tool_calls.0.function",
        ),
        (
            {"role": "assistant", "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]},
            INVALID_REQUEST,
            "messages.0.tool_calls.0.function.arguments",
        ),
        ({"role": "user", "thinking": "hm"}, INVALID_REQUEST, "messages.0.thinking"),
        ({"role": "user", "tool_name": "f"}, INVALID_REQUEST, "messages.0.tool_name"),
        ({"role": "user", "contents": "4"}, INVALID_REQUEST, "messages.0.contents"),
    ],
)
def test_message_that_cannot_be_taken_is_named(message: dict[str, object], kind: object, field: str) -> None:
    error = refused(OllamaChatBody, messages=[message])
    assert (error.kind, error.field) == (kind, field)


def test_messages_that_are_no_list_are_an_error_that_names_them() -> None:
    assert refused(OllamaChatBody, messages={"role": "user"}).field == "messages"


def test_top_logprobs_need_logprobs() -> None:
    assert refused(GenerateBody, top_logprobs=3).field == "top_logprobs"
    assert GenerateBody.parse({"model": "m", "logprobs": True, "top_logprobs": 3}).wants_logprobs == 3
    assert GenerateBody.parse({"model": "m", "logprobs": True}).wants_logprobs == 0
    assert GenerateBody.parse({"model": "m"}).wants_logprobs is None
