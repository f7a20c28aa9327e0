"""Many clients of all dialects at once, some of them rude: each request ends once, and nothing is left."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import httpx
import pytest

from llmrun.config import Paths
from llmrun.store import Store, parse_modelfile
from tests.real.daemons import Daemon, eventually
from tests.support.tiny import Shape, write_llama

pytestmark = [pytest.mark.real, pytest.mark.timeout(240)]

MODEL = "tiny-crowd:1m"
CLIENTS = 32
EACH = 4
HI = [{"role": "user", "content": "Hi"}]
SCHEMA = {"type": "object", "properties": {"n": {"enum": [1, 2]}}, "required": ["n"]}


@pytest.fixture(scope="module")
def crowd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon with one tiny model that answers four at a time."""
    home = tmp_path_factory.mktemp("crowd")
    weights = write_llama(home / "crowd.gguf", Shape(ctx=1024, fim=True))
    Store(Paths.find({"LLMRUN_HOME": str(home)})).create(MODEL, parse_modelfile(f"FROM {weights}"))
    running = Daemon(home, LLMRUN_PARALLEL="4")
    yield running
    running.close()


def requests(chance: random.Random) -> list[tuple[str, dict[str, Any], int]]:
    """Route, body and the status that is right for it, of one client's requests in its order."""
    stream = chance.random() < 0.6
    turns = [{"role": "user", "content": f"Number {chance.random()}"}]
    good: list[tuple[str, dict[str, Any], int]] = [
        ("/v1/chat/completions", {"messages": turns, "max_tokens": 12}, 200),
        ("/v1/chat/completions", {"messages": turns, "max_tokens": 40, "json_schema": SCHEMA}, 200),
        ("/v1/completions", {"prompt": ["a", "b", "c"], "max_tokens": 6, "n": 2}, 200),
        ("/v1/responses", {"input": "Hi", "max_output_tokens": 9}, 200),
        ("/v1/messages", {"messages": turns, "max_tokens": 12}, 200),
        ("/api/chat", {"messages": turns, "options": {"num_predict": 12}}, 200),
        ("/api/generate", {"prompt": "x", "options": {"num_predict": 12}}, 200),
        ("/completion", {"prompt": "x" * chance.randrange(600), "n_predict": 12}, 200),
        ("/infill", {"input_prefix": "a", "input_suffix": "b", "n_predict": 8}, 200),
        ("/completion", {"prompt": "too long " * 400, "n_predict": 1}, 400),
        ("/v1/chat/completions", {"messages": HI, "temperature": -1}, 400),
        ("/v1/messages", {"messages": HI, "max_tokens": 5, "model": "nobody:1b"}, 404),
    ]
    chosen = chance.choices(good, k=EACH)
    return [(path, {"model": MODEL, "stream": stream, **body}, status) for path, body, status in chosen]


def ends(path: str, text: str) -> int:
    """How often a reply says that it is over."""
    if path == "/v1/messages":
        return text.count("event: message_stop") or text.count('"stop_reason":')
    if path == "/v1/responses":
        last = text.count("event: response.incomplete") + text.count("event: response.completed")
        return last if "event: " in text else text.count('"object":"response"')
    if path.startswith("/api/"):
        return text.count('"done":true')
    if path.startswith("/v1/"):
        return text.count("data: [DONE]") or text.count('"object":')
    return text.count('"stop":true')


def play(daemon: Daemon, seed: int) -> list[str]:
    """One client; what went wrong for it."""
    chance = random.Random(seed)
    wrong = []
    with httpx.Client(base_url=daemon.url, timeout=120) as http:
        for path, body, status in requests(chance):
            rude = status == 200 and chance.random() < 0.25
            with http.stream("POST", path, json=body) as reply:
                if rude:
                    continue  # leaves without reading the answer
                reply.read()
            if reply.status_code != status:
                wrong.append(f"{path} {json.dumps(body)[:80]}: {reply.status_code} {reply.text[:200]}")
            elif status == 200 and ends(path, reply.text) != 1:
                wrong.append(f"{path} {json.dumps(body)[:80]}: {ends(path, reply.text)} ends")
    return wrong


def test_each_of_many_mixed_clients_gets_one_outcome_and_nothing_is_left(crowd: Daemon) -> None:
    with ThreadPoolExecutor(CLIENTS) as pool:
        found = [
            wrong for client in pool.map(lambda seed: play(crowd, seed), range(CLIENTS)) for wrong in client
        ]
    assert found == []

    def nothing_is_left() -> bool:
        (model,) = crowd.loaded()
        return crowd.is_at_rest() and not any(
            model["stats"][name] for name in ("waiting", "swapped", "kv_used")
        )

    assert eventually(nothing_is_left, 10), crowd.loaded()
    assert crowd.http.get("/health").status_code == 200
