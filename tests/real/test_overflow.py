"""A prompt longer than the context: an error in every dialect, and what each may ask for instead."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon

CTX = 512
TURNS = [
    {"role": role, "content": f"Number {number}: {'very ' * 20}long."}
    for number in range(12)
    for role in ("user", "assistant")
]
MESSAGES = [
    {"role": "system", "content": "You are a parrot named Coco."},
    *TURNS,
    {"role": "user", "content": "What is your name?"},
]


@pytest.fixture(scope="module")
def small(home: Path) -> Iterator[Daemon]:
    running = Daemon(home, LLMRUN_CTX=str(CTX))
    yield running
    running.close()


ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "openai": ("/v1/chat/completions", {"messages": MESSAGES, "max_tokens": 8, "temperature": 0}),
    "responses": ("/v1/responses", {"input": MESSAGES, "max_output_tokens": 16, "temperature": 0}),
    "anthropic": (
        "/v1/messages",
        {"system": MESSAGES[0]["content"], "messages": MESSAGES[1:], "max_tokens": 8, "temperature": 0},
    ),
    "ollama": (
        "/api/chat",
        {"messages": MESSAGES, "stream": False, "options": {"num_predict": 8, "temperature": 0}},
    ),
    "completions": ("/v1/completions", {"prompt": "word " * 900, "max_tokens": 8}),
    "llama.cpp": ("/completion", {"prompt": "word " * 900, "n_predict": 8}),
}


def left_out(reply: dict[str, Any]) -> int:
    """How many tokens a reply says were left out, wherever its dialect says so."""
    usage = reply.get("usage", {})
    places = (
        usage.get("prompt_tokens_details", {}).get("truncated_tokens"),
        usage.get("input_tokens_details", {}).get("truncated_tokens"),
        usage.get("truncated_input_tokens"),
        reply.get("timings", {}).get("truncated_tokens"),
    )
    return next((place for place in places if place), int(reply.get("truncated", False)))


@pytest.mark.parametrize("dialect", ROUTES)
def test_prompt_too_long_is_an_error_with_both_numbers_unless_asked_otherwise(
    small: Daemon, dialect: str
) -> None:
    path, body = ROUTES[dialect]
    body = {"model": DEFAULT_MODEL, **body}
    refused = small.http.post(path, json=body)
    assert refused.status_code == 400
    assert str(CTX) in refused.text
    for overflow in ("shift", "truncate_middle"):
        reply = small.http.post(path, json={**body, "context_overflow": overflow})
        assert reply.status_code == 200, reply.text
        assert left_out(reply.json())


def test_shift_keeps_the_system_prompt_and_the_last_question(small: Daemon) -> None:
    path, body = ROUTES["openai"]
    reply = small.http.post(
        path, json={"model": DEFAULT_MODEL, **body, "max_tokens": 30, "context_overflow": "shift"}
    ).json()
    assert "Coco" in reply["choices"][0]["message"]["content"]
    assert reply["usage"]["prompt_tokens"] < CTX


def test_shift_lets_an_answer_go_on_beyond_the_context(small: Daemon) -> None:
    body = {"model": DEFAULT_MODEL, "prompt": "Once", "max_tokens": CTX + 100, "ignore_eos": True}
    short = small.http.post("/v1/completions", json=body).json()
    assert short["usage"]["total_tokens"] == CTX
    long = small.http.post("/v1/completions", json={**body, "context_overflow": "shift"}).json()
    assert long["usage"]["completion_tokens"] == CTX + 100


@pytest.mark.parametrize("field", ["truncate", "shift"])
def test_ollama_fields_that_ask_for_it_are_honoured(small: Daemon, field: str) -> None:
    path, body = ROUTES["ollama"]
    assert small.http.post(path, json={"model": DEFAULT_MODEL, **body, field: True}).status_code == 200
    assert small.http.post(path, json={"model": DEFAULT_MODEL, **body, field: False}).status_code == 400


def test_responses_truncation_auto_is_honoured(small: Daemon) -> None:
    path, body = ROUTES["responses"]
    reply = small.http.post(path, json={"model": DEFAULT_MODEL, **body, "truncation": "auto"}).json()
    assert reply["truncation"] == "auto"
    assert left_out(reply)


def test_llamacpp_completion_that_shifts_counts_all_that_was_said(small: Daemon) -> None:
    body = {"model": DEFAULT_MODEL, "prompt": "Once upon a time", "n_predict": 600, "ignore_eos": True}
    said = small.http.post("/completion", json={**body, "context_overflow": "shift"}).json()
    assert said["tokens_predicted"] == said["timings"]["predicted_n"] == 600
    assert said["truncated"] is True
