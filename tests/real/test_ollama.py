"""The official `ollama` client and `curl` against a real daemon with the real model."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Iterator
from datetime import datetime, timedelta, timezone
from pathlib import Path

import jsonschema
import ollama
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually
from tests.support.tiny import Shape, write_llama

pytestmark = pytest.mark.real

SEA = [{"role": "user", "content": "Write one sentence about the sea."}]
NEVER_ENDS = "1 2 3 4 5 6 7 8 9 10 11 12 13 14 15"


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[ollama.Client]:
    with ollama.Client(host=daemon.url, timeout=100) as made:
        yield made


def test_chat_stream_joins_to_the_whole_reply(client: ollama.Client) -> None:
    how = {"temperature": 0, "num_predict": 30}
    whole = client.chat(DEFAULT_MODEL, SEA, options=how)
    *parts, last = client.chat(DEFAULT_MODEL, SEA, options=how, stream=True)
    assert "".join(part.message.content or "" for part in parts) == whole.message.content
    assert (last.done_reason, last.eval_count) == (whole.done_reason, whole.eval_count)
    assert last.prompt_eval_count == whole.prompt_eval_count
    assert last.prompt_eval_count
    assert last.total_duration
    assert last.eval_duration
    assert last.total_duration >= last.eval_duration > 0


def test_generate_says_what_chat_says_and_raw_what_a_template_would(client: ollama.Client) -> None:
    how = {"temperature": 0, "num_predict": 12}
    said = client.chat(DEFAULT_MODEL, [{"role": "system", "content": "Be brief."}, *SEA], options=how)
    prompt = SEA[0]["content"]
    generated = client.generate(DEFAULT_MODEL, prompt, system="Be brief.", options=how)
    assert generated.response == said.message.content
    turns = f"<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\n{prompt}<|im_end|>\n"
    raw = client.generate(DEFAULT_MODEL, f"{turns}<|im_start|>assistant\n", raw=True, options=how)
    assert raw.response == said.message.content
    assert raw.prompt_eval_count == generated.prompt_eval_count


@pytest.mark.parametrize("template", ["{{ messages[-1].content }}", "{{ .Prompt }}"])
def test_generate_template_of_the_request_is_used(client: ollama.Client, template: str) -> None:
    how = {"temperature": 0, "num_predict": 8}
    bare = client.generate(DEFAULT_MODEL, "One, two, three,", raw=True, options=how)
    templated = client.generate(DEFAULT_MODEL, "One, two, three,", template=template, options=how)
    assert (templated.response, templated.prompt_eval_count) == (bare.response, bare.prompt_eval_count)


def test_context_goes_on_from_the_earlier_answer(client: ollama.Client) -> None:
    how = {"temperature": 0, "num_predict": 8}
    first = client.generate(DEFAULT_MODEL, "My name is Ada.", options=how)
    assert first.context
    assert first.prompt_eval_count
    assert len(first.context) == first.prompt_eval_count + (first.eval_count or 0)
    fresh = client.generate(DEFAULT_MODEL, "Who am I?", options=how)
    *_, second = client.generate(DEFAULT_MODEL, "Who am I?", options=how, context=first.context, stream=True)
    assert second.prompt_eval_count == len(first.context) + (fresh.prompt_eval_count or 0)
    assert list(second.context or ())[: len(first.context)] == list(first.context)
    assert client.generate(DEFAULT_MODEL, "Hi", raw=True, options=how).context is None


def test_begun_answer_is_gone_on_from_and_not_repeated(client: ollama.Client) -> None:
    begun = [
        {"role": "user", "content": "Count from one to ten in digits, with commas."},
        {"role": "assistant", "content": "1, 2, 3, 4,"},
    ]
    reply = client.chat(DEFAULT_MODEL, begun, options={"temperature": 0, "num_predict": 6})
    assert (reply.message.content or "").startswith(" 5, 6")


def test_tools_reach_the_model_and_their_results_are_answered(client: ollama.Client) -> None:
    def weather(city: str) -> str:
        """The weather in a city."""
        return city

    how = {"temperature": 0, "num_predict": 20}
    told = client.chat(DEFAULT_MODEL, SEA, tools=[weather], options=how)
    assert (told.prompt_eval_count or 0) > (
        client.chat(DEFAULT_MODEL, SEA, options=how).prompt_eval_count or 0
    )
    call = {"function": {"name": "weather", "arguments": {"city": "Oslo"}}}
    turns = [
        {"role": "user", "content": "How is the weather in Oslo?"},
        {"role": "assistant", "tool_calls": [call]},
        {"role": "tool", "tool_name": "weather", "content": "Snow, minus 40 degrees."},
    ]
    reply = client.chat(DEFAULT_MODEL, turns, tools=[weather], options=how)
    said = f"{reply.message.content}{[call.function.arguments for call in reply.message.tool_calls or ()]}"
    assert "Oslo" in said or "now" in said


def test_think_of_a_model_that_cannot_is_400_and_off_is_taken(client: ollama.Client) -> None:
    how = {"temperature": 0, "num_predict": 8}
    with pytest.raises(ollama.ResponseError, match="does not think") as caught:
        client.chat(DEFAULT_MODEL, SEA, think=True)
    assert caught.value.status_code == 400
    # Greedy text is compared over equal batch shapes: with the prompt in the prefix cache both times.
    client.chat(DEFAULT_MODEL, SEA, options=how)
    plain = client.chat(DEFAULT_MODEL, SEA, options=how)
    assert client.chat(DEFAULT_MODEL, SEA, think=False, options=how).message == plain.message


def test_suffix_for_a_model_that_cannot_fill_in_is_400(client: ollama.Client) -> None:
    with pytest.raises(ollama.ResponseError, match="cannot fill in the middle") as caught:
        client.generate(DEFAULT_MODEL, "def f(", suffix="return 1")
    assert caught.value.status_code == 400


@pytest.mark.parametrize("stream", [False, True])
def test_format_schema_is_kept_to(client: ollama.Client, stream: bool) -> None:
    schema = {
        "type": "object",
        "properties": {"age": {"type": "integer"}, "mood": {"enum": ["calm", "wild 🌊"]}},
        "required": ["age", "mood"],
        "additionalProperties": False,
    }
    how = {"temperature": 1, "seed": 3, "num_predict": 100}
    reply = client.chat(DEFAULT_MODEL, SEA, format=schema, options=how, stream=stream)
    said = "".join(part.message.content or "" for part in (reply if stream else [reply]))
    jsonschema.validate(json.loads(said), schema)


def test_format_json_is_an_object_and_nothing_behind_it(client: ollama.Client) -> None:
    ask = 'Say it as JSON: {"sea": "calm"}. Then explain it at length.'
    reply = client.generate(DEFAULT_MODEL, ask, format="json", options={"temperature": 0, "num_predict": 200})
    assert reply.done_reason == "stop"
    assert isinstance(json.loads(reply.response), dict)
    assert reply.response.endswith("}")


def test_format_that_cannot_be_kept_to_is_400_that_names_it(client: ollama.Client) -> None:
    schema = {"type": "object", "properties": {"x": {"type": "string", "pattern": "^(?=a)b$"}}}
    with pytest.raises(ollama.ResponseError, match="format") as caught:
        client.generate(DEFAULT_MODEL, "Hi", format=schema)
    assert caught.value.status_code == 400


@pytest.mark.parametrize("limit", [{}, {"num_predict": -1}, {"num_predict": -2}, {"num_predict": 5}])
def test_num_predict_ends_with_a_length_reason(client: ollama.Client, limit: dict[str, int]) -> None:
    how = {"temperature": 0, "num_ctx": 96, "stop": [], **limit}
    reply = client.generate(DEFAULT_MODEL, NEVER_ENDS, raw=True, options=how)
    assert reply.done_reason == "length"
    assert reply.prompt_eval_count
    assert reply.eval_count == (5 if limit == {"num_predict": 5} else 96 - reply.prompt_eval_count)


def test_num_predict_zero_computes_the_prompt_and_writes_nothing(client: ollama.Client) -> None:
    reply = client.generate(DEFAULT_MODEL, NEVER_ENDS, raw=True, options={"num_predict": 0})
    assert (reply.response, reply.done_reason, reply.eval_count) == ("", "length", 0)
    assert reply.prompt_eval_count


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("how", "context"), [({}, 2048), ({"num_ctx": 64}, 64)])
def test_prompt_longer_than_the_context_is_400_with_both_numbers(
    client: ollama.Client, how: dict[str, int], context: int, stream: bool
) -> None:
    client.generate(DEFAULT_MODEL)  # so that the answer comes before the stream's headers
    long = [{"role": "user", "content": "a " * 4000}]
    with pytest.raises(ollama.ResponseError, match=rf"has 40\d\d tokens.* {context} ") as caught:
        list(client.chat(DEFAULT_MODEL, long, options=how, stream=stream))
    assert caught.value.status_code == 400


def test_keep_alive_loads_shows_and_unloads(client: ollama.Client, daemon: Daemon) -> None:
    assert client.generate(DEFAULT_MODEL, keep_alive="40m").done_reason == "load"
    (model,) = client.ps().models
    assert (model.name, model.context_length) == (DEFAULT_MODEL, 2048)
    assert model.expires_at is not None
    assert timedelta(minutes=38) < model.expires_at - datetime.now(timezone.utc) < timedelta(minutes=41)
    assert client.chat(DEFAULT_MODEL, keep_alive=0).done_reason == "unload"
    assert client.ps().models == []
    client.generate(DEFAULT_MODEL, "Hi", options={"num_predict": 1}, keep_alive=0)
    assert eventually(lambda: not daemon.loaded(), 10)


def test_models_are_listed_and_shown(client: ollama.Client) -> None:
    (model,) = client.list().models
    assert (model.model, model.size) == (DEFAULT_MODEL, 98_362_432)
    assert model.digest == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    shown = client.show("smollm2")
    assert shown.details is not None
    assert (shown.details.parameter_size, shown.details.quantization_level) == ("134.52M", "Q4_1")
    assert "<|im_start|>" in (shown.template or "")
    assert shown.modelinfo is not None
    assert shown.modelinfo["llama.context_length"] == 8192


def test_copy_answers_under_its_name_and_is_deleted(client: ollama.Client) -> None:
    client.copy(DEFAULT_MODEL, "sea:copy")
    try:
        assert client.generate("sea:copy", "Hi", options={"num_predict": 1}).eval_count == 1
    finally:
        client.delete("sea:copy")
    with pytest.raises(ollama.ResponseError, match="not found"):
        client.generate("sea:copy", "Hi")


def test_turns_that_a_template_refuses_are_400_in_its_words(client: ollama.Client) -> None:  # B50
    alternate = (
        "{% for m in messages %}{% if loop.previtem is defined and loop.previtem.role == m.role %}"
        "{{ raise_exception('Roles must alternate!') }}{% endif %}{{ m.content }}\n{% endfor %}"
    )
    client.create("sea:strict", from_=DEFAULT_MODEL, template=alternate)
    try:
        assert client.chat("sea:strict", SEA, options={"num_predict": 1}).done
        with pytest.raises(ollama.ResponseError, match="Roles must alternate!") as caught:
            client.chat("sea:strict", [*SEA, *SEA])
        assert caught.value.status_code == 400
    finally:
        client.delete("sea:strict")


def test_create_of_a_model_speaks_as_it_is_told(client: ollama.Client) -> None:
    how = {"temperature": 0, "num_predict": 8}
    client.create("sea:made", from_=DEFAULT_MODEL, system="Be brief.", parameters=how)
    try:
        made = client.chat("sea:made", SEA)
        told = client.chat(DEFAULT_MODEL, [{"role": "system", "content": "Be brief."}, *SEA], options=how)
        assert made.message.content == told.message.content
        assert "num_predict" in (client.show("sea:made").parameters or "")
    finally:
        client.delete("sea:made")


def test_create_of_an_uploaded_file_answers(client: ollama.Client, tmp_path: Path, daemon: Daemon) -> None:
    path = write_llama(tmp_path / "tiny.gguf")
    digest = client.create_blob(path)
    assert daemon.http.head(f"/api/blobs/{digest}").status_code == 200
    client.create("sea:tiny", files={"tiny.gguf": digest})
    try:
        assert client.generate("sea:tiny", "Hi", options={"num_predict": 3, "temperature": 0}).eval_count
    finally:
        client.delete("sea:tiny")
    assert daemon.http.head(f"/api/blobs/{digest}").status_code == 404


def test_create_with_quantize_makes_a_smaller_model_that_answers(
    client: ollama.Client, tmp_path: Path
) -> None:
    path = write_llama(tmp_path / "whole.gguf", Shape(embd=256, ff=512, heads=4, kv_heads=2))
    client.create("sea:whole", files={"whole.gguf": client.create_blob(path)}, system="Be brief.")
    try:
        steps = list(client.create("sea:q8", from_="sea:whole", quantize="q8_0", stream=True))
        assert steps[-1].status == "success"
        models = {model.model: model for model in client.list().models}
        small, whole = models["sea:q8"], models["sea:whole"]
        assert small.details is not None
        assert small.details.quantization_level == "Q8_0"
        assert (small.size or 0) < (whole.size or 0) / 2
        assert {name for name in models if name and name.startswith("sea")} == {"sea:q8", "sea:whole"}
        assert client.show("sea:q8").modelfile
        assert client.generate("sea:q8", "Hi", options={"num_predict": 2}).eval_count
        with pytest.raises(ollama.ResponseError, match="quantised already"):
            client.create("sea:again", from_="sea:q8", quantize="q4_0")
    finally:
        for name in ("sea:q8", "sea:whole"):
            client.delete(name)


def test_pull_of_what_is_here_succeeds(client: ollama.Client) -> None:
    assert [step.status for step in client.pull(DEFAULT_MODEL, stream=True)][-1] == "success"


@pytest.mark.skipif(not shutil.which("curl"), reason="curl is not installed")
def test_curl_streams_lines(daemon: Daemon) -> None:
    body = f'{{"model": "{DEFAULT_MODEL}", "prompt": "Hi", "options": {{"num_predict": 3}}}}'
    done = subprocess.run(
        ["curl", "-sS", f"{daemon.url}/api/generate", "-d", body], capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert '"done":true' in done.stdout.splitlines()[-1]
