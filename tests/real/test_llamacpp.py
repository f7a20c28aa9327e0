"""llama-server's own routes with the real model: what its clients send, what they can rely on."""

from __future__ import annotations

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import httpx
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, eventually
from tests.support.tiny import Shape, write_llama

pytestmark = pytest.mark.real

LONG = "The cat sat on the mat and then it went away. " * 140
TEXTS = ["Hello <|im_end|> wörld", "  two  spaces\n\n\ttab", "🦙🦙", "def f(x):\n    return x", ""]


def post(daemon: Daemon, path: str, **body: Any) -> Any:
    reply = daemon.http.post(path, json=body)
    assert reply.status_code == 200, reply.text
    return reply.json()


def complete(daemon: Daemon, prompt: Any = "The sky is", **fields: Any) -> Any:
    return post(daemon, "/completion", **{"prompt": prompt, "temperature": 0, "n_predict": 12, **fields})


def stream(daemon: Daemon, path: str = "/completion", **body: Any) -> list[dict[str, Any]]:
    fields = {"prompt": "The sky is", "temperature": 0, "n_predict": 12, **body, "stream": True}
    with daemon.http.stream("POST", path, json=fields) as reply:
        lines = [line for line in reply.iter_lines() if line and not line.startswith(":")]
    return [json.loads(line.removeprefix("data: ")) for line in lines]


def joined(parts: list[dict[str, Any]]) -> str:
    return "".join(part["content"] for part in parts)


def test_tokens_are_those_of_llama_cpp_python_both_ways(daemon: Daemon, model_path: Path) -> None:
    import llmrun.llama.library  # noqa: F401  (decides which kernels this process may use)
    import llama_cpp  # isort: skip

    oracle = llama_cpp.Llama(str(model_path), vocab_only=True, verbose=False)
    try:
        for text in TEXTS:
            for special in (False, True):
                expected = oracle.tokenize(text.encode(), add_bos=False, special=special)
                body = {"content": text, "parse_special": special}
                assert post(daemon, "/tokenize", **body)["tokens"] == expected
                pieces = post(daemon, "/tokenize", **body, with_pieces=True)["tokens"]
                assert [each["id"] for each in pieces] == expected
                assert post(daemon, "/detokenize", tokens=expected)["content"] == text
    finally:
        oracle.close()


def test_completion_whole_and_streamed_are_the_same(daemon: Daemon) -> None:
    whole = complete(daemon, return_tokens=True)
    *parts, last = stream(daemon)
    assert joined(parts) == whole["content"]
    assert [token for part in parts for token in part["tokens"]] == whole["tokens"]
    assert post(daemon, "/detokenize", tokens=whole["tokens"])["content"] == whole["content"]
    assert (whole["tokens_predicted"], whole["stop_type"], whole["truncated"]) == (12, "limit", False)
    assert last["stop"]
    apart = {"content", "tokens", "timings", "tokens_cached", "generation_settings"}
    assert {key: last[key] for key in last.keys() - apart} == {
        key: whole[key] for key in whole.keys() - apart
    }


def test_completion_says_what_openais_route_says(daemon: Daemon) -> None:
    body = {"model": DEFAULT_MODEL, "prompt": "The sky is", "temperature": 0, "max_tokens": 12}
    assert complete(daemon)["content"] == post(daemon, "/v1/completions", **body)["choices"][0]["text"]


def test_completion_prompt_in_every_form_is_the_same_prompt(daemon: Daemon) -> None:
    tokens = post(daemon, "/tokenize", content="The sky is", add_special=True)["tokens"]
    both = complete(daemon, [tokens, "The sky is", {"prompt_string": "The sky is"}], n_predict=3)
    mixed = complete(daemon, [*tokens[:2], " is"], n_predict=3)
    assert {each["content"] for each in both} == {mixed["content"]}
    assert {each["prompt"] for each in both} == {mixed["prompt"]} == {"The sky is"}


def test_completion_seeded_is_the_same_each_time(daemon: Daemon) -> None:
    first, again, other = (complete(daemon, temperature=1.5, seed=seed) for seed in (5, 5, 6))
    assert first["content"] == again["content"] != other["content"]
    assert first["generation_settings"]["seed"] == 5


@pytest.mark.parametrize("prompt", ["def f(x):", "A list:\n- one", "Dear Sir,"])
def test_completion_newline_as_a_stop_leaves_none(daemon: Daemon, prompt: str) -> None:  # B05
    free = complete(daemon, prompt, n_predict=40)["content"]
    reply = complete(daemon, prompt, n_predict=40, stop=["\n"])
    assert reply["content"] == free.partition("\n")[0]
    assert (reply["stop_type"], reply["stopping_word"]) == (("word", "\n") if "\n" in free else ("limit", ""))


def test_completion_tail_that_might_have_been_a_stop_is_delivered(daemon: Daemon) -> None:  # B03
    free = complete(daemon)["content"]
    parts = stream(daemon, stop=[free[-3:] + "\0never"])
    assert joined(parts) == free


def test_completion_empty_stop_list_still_ends_with_the_model(daemon: Daemon) -> None:  # B06
    prompt = "<|im_start|>user\nSay hi.<|im_end|>\n<|im_start|>assistant\n"
    reply = complete(daemon, prompt, n_predict=200, stop=[])
    assert reply["stop_type"] == "eos"
    assert "<|" not in reply["content"]


def test_completion_grammar_and_schema_bind(daemon: Daemon) -> None:
    assert complete(daemon, grammar='root ::= "yes" | "no"')["content"] in ("yes", "no")
    number = {"type": "integer", "minimum": 0, "maximum": 9}
    schema = {
        "type": "object",
        "properties": {"n": number},
        "required": ["n"],
        "additionalProperties": False,
    }
    value = json.loads(complete(daemon, json_schema=schema, n_predict=60)["content"])
    assert 0 <= value["n"] <= 9


def test_completion_probabilities_are_the_same_streamed_and_not(daemon: Daemon) -> None:  # B11
    whole = complete(daemon, n_probs=3)["completion_probabilities"]
    after = complete(daemon, n_probs=3, post_sampling_probs=True)["completion_probabilities"]
    assert [record["id"] for record in after] == [record["id"] for record in whole]
    assert all(record["prob"] == 1.0 for record in after)  # greedy leaves one
    parts = stream(daemon, n_probs=3)
    streamed = [record for part in parts[:-1] for record in part["completion_probabilities"]]
    assert [record["id"] for record in streamed] == [record["id"] for record in whole]
    # The second run finds its prompt cached, so its last token is computed in another batch shape.
    probabilities = [record["logprob"] for record in whole]
    assert [record["logprob"] for record in streamed] == pytest.approx(probabilities, abs=0.02)
    assert len(whole) == 12
    for record in whole:
        assert [len(record["top_logprobs"]), record["top_logprobs"][0]["id"]] == [3, record["id"]]


def test_completion_emoji_come_whole(daemon: Daemon) -> None:  # B01
    parts = stream(daemon, json_schema={"enum": ["🦙👩‍🚀🎉"]}, n_predict=60)
    assert json.loads(joined(parts)) == "🦙👩‍🚀🎉"
    assert not any("\N{REPLACEMENT CHARACTER}" in part["content"] for part in parts)


def test_completion_progress_goes_to_the_end_and_knows_what_is_cached(daemon: Daemon) -> None:  # B68
    prompt = "A tale of two streams. " * 60
    for again in (False, True):
        parts = stream(daemon, prompt=prompt, return_progress=True, n_predict=2)
        progress = [part["prompt_progress"] for part in parts if "prompt_progress" in part]
        total = parts[-1]["tokens_evaluated"]
        assert [progress[-1]["processed"], progress[-1]["total"]] == [total, total]
        assert [each["processed"] for each in progress] == sorted(each["processed"] for each in progress)
        assert progress[0]["cache"] == total - 1 if again else progress[0]["cache"] < 9


def test_chat_progress_comes_before_the_answer(daemon: Daemon) -> None:
    body = {
        "messages": [{"role": "user", "content": "Once more, from the top. " * 40}],
        "max_tokens": 2,
        "return_progress": True,
        "stream": True,
    }
    with daemon.http.stream("POST", "/v1/chat/completions", json=body) as reply:
        chunks = [json.loads(line[6:]) for line in reply.iter_lines() if line.startswith("data: {")]
    last = max(at for at, chunk in enumerate(chunks) if "prompt_progress" in chunk)
    first_text = min(
        at
        for at, chunk in enumerate(chunks)
        if chunk["choices"] and chunk["choices"][0]["delta"].get("content")
    )
    assert last < first_text
    assert chunks[last]["prompt_progress"]["processed"] == chunks[last]["prompt_progress"]["total"]
    assert chunks[-1]["timings"]["predicted_n"] == 2


def test_template_applied_by_hand_is_the_chat(daemon: Daemon) -> None:
    messages = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is water wet?"}]
    prompt = post(daemon, "/apply-template", messages=messages)["prompt"]
    body = {"messages": messages, "temperature": 0, "max_tokens": 3}
    chat = post(daemon, "/v1/chat/completions", **body)
    written = complete(daemon, prompt, n_predict=3)
    assert written["tokens_evaluated"] == chat["usage"]["prompt_tokens"]
    assert written["content"] == chat["choices"][0]["message"]["content"]
    assert prompt.endswith("<|im_start|>assistant\n")


@pytest.mark.parametrize("streams", [False, True])
def test_completion_too_long_is_a_400_with_both_numbers(daemon: Daemon, streams: bool) -> None:  # B20, B22
    for prompt, exact in (("word " * 3000, True), ("word " * 400_000, False)):
        reply = daemon.http.post("/completion", json={"prompt": prompt, "stream": streams})
        error = reply.json()["error"]
        assert (reply.status_code, error["type"], error["n_ctx"]) == (400, "exceed_context_size_error", 2048)
        assert (error["n_prompt_tokens"] == 3001) == exact
        assert str(error["n_prompt_tokens"]) in error["message"]


def test_completion_dropped_in_prefill_is_not_computed_to_its_end(daemon: Daemon) -> None:  # B13
    complete(daemon)
    with pytest.raises(httpx.ReadTimeout):
        daemon.http.post(
            "/completion", json={"prompt": LONG + str(time.time()), "n_predict": 1}, timeout=0.15
        )
    assert eventually(daemon.is_at_rest, 3)


def test_slots_and_props_tell_of_the_model(daemon: Daemon) -> None:
    endless = {"n_predict": 150, "ignore_eos": True}
    with ThreadPoolExecutor() as pool:
        running = [pool.submit(complete, daemon, f"{number}", **endless) for number in range(2)]

        def busy() -> bool:
            return sum(slot["is_processing"] for slot in daemon.http.get("/slots").json()) == 2

        assert eventually(busy, 30)
        assert {each.result()["tokens_predicted"] for each in running} == {150}
    props = daemon.http.get("/props").json()
    assert props["default_generation_settings"]["n_ctx"] == 2048
    assert len(daemon.http.get("/slots").json()) == props["total_slots"]
    assert "im_start" in props["chat_template"]


def test_infill_as_editors_send_it(daemon: Daemon, tmp_path: Path) -> None:
    model = str(write_llama(tmp_path / "fim.gguf", Shape(fim=True)))
    body = {
        "model": model,
        "input_prefix": "def f():\n",
        "input_suffix": "\n",
        "input_extra": [{"text": "x = 1", "filename": "a.py"}],
        "prompt": "    ret",
        "n_predict": 6,
        "n_indent": 4,
        "samplers": ["top_k", "top_p", "infill"],
        "t_max_predict_ms": 1000,
    }
    reply = post(daemon, "/infill", **body)
    assert "--- snippet ---" in reply["prompt"]
    assert reply["prompt"].index("x = 1") < reply["prompt"].index("def f():\n    ret")
    assert reply["tokens_predicted"] <= 6
    warmed = post(daemon, "/infill", **{**body, "n_predict": 0, "samplers": []})
    assert (warmed["content"], warmed["tokens_predicted"]) == ("", 0)
    refused = daemon.http.post("/infill", json={**body, "model": DEFAULT_MODEL})
    assert refused.status_code == 400
    assert "cannot fill in the middle" in refused.json()["error"]["message"]


def test_embedding_has_the_numbers_of_openais_route_in_another_shape(daemon: Daemon) -> None:
    texts = ["A man is eating.", "🦙"]
    theirs = post(daemon, "/v1/embeddings", model=DEFAULT_MODEL, input=texts)["data"]
    for path in ("/embedding", "/embeddings"):
        ours = post(daemon, path, content=texts)
        assert [each["index"] for each in ours] == [0, 1]
        for one, other in zip(ours, theirs, strict=True):
            assert one["embedding"][0] == pytest.approx(other["embedding"], abs=1e-3)
    raw = post(daemon, "/embedding", content=texts[0], embd_normalize=-1)[0]["embedding"][0]
    norm = sum(x * x for x in raw) ** 0.5
    assert norm > 2
    assert [x / norm for x in raw] == pytest.approx(theirs[0]["embedding"], abs=1e-3)


@pytest.mark.parametrize(
    ("path", "body", "count"),
    [
        ("/v1/chat/completions", {"messages": [{"role": "user", "content": "Hi 🦙"}]}, "prompt_tokens"),
        ("/v1/responses", {"input": "Hi 🦙", "instructions": "Be brief."}, "input_tokens"),
    ],
)
def test_input_tokens_are_those_that_an_answer_counts(
    daemon: Daemon, path: str, body: dict[str, Any], count: str
) -> None:
    counted = post(daemon, f"{path}/input_tokens", model=DEFAULT_MODEL, **body)
    limit = "max_tokens" if count == "prompt_tokens" else "max_output_tokens"
    answered = post(daemon, path, model=DEFAULT_MODEL, **body, **{limit: 1})
    assert counted["input_tokens"] == answered["usage"][count]
