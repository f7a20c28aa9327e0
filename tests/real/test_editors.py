"""What clients of llama-server send, played to a real daemon and a model that can fill in.

The requests are those of tests/api/llamacpp/recorded; what is checked here is what only a model can show.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

from llmrun.config import Paths
from llmrun.store import Store, parse_modelfile
from tests.api.llamacpp.recorded import Recorded, has, parts, recorded
from tests.real.daemons import Daemon
from tests.support.tiny import Shape, write_llama

pytestmark = [pytest.mark.real, pytest.mark.timeout(120)]

MODEL = "tiny-coder:1m"


@pytest.fixture(scope="module")
def coder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """A daemon whose only model has a vocabulary for filling in, so that no request need name it."""
    home = tmp_path_factory.mktemp("coder")
    weights = write_llama(home / "coder.gguf", Shape(ctx=4096, fim=True))
    store = Store(Paths.find({"LLMRUN_HOME": str(home)}))
    store.create(MODEL, parse_modelfile(f"FROM {weights}"))
    running = Daemon(home)
    yield running
    running.close()


def sent_by(client: str, what: str) -> Recorded:
    (found,) = [each for each in recorded() if (each.client, each.what) == (client, what)]
    return found


def short(body: dict[str, Any]) -> dict[str, Any]:
    """The body with a lower limit: a random model does not end by itself."""
    limits = {name: 24 for name in ("n_predict", "max_tokens") if body.get(name, 0) not in (0, None)}
    options = {"options": {**body["options"], "num_predict": 24}} if "options" in body else {}
    return {**body, **limits, **options}


@pytest.mark.parametrize("sent", recorded(), ids=str)
def test_recorded_request_is_answered_with_what_its_client_reads(coder: Daemon, sent: Recorded) -> None:
    reply = coder.http.post(sent.path, json=short(sent.body_for(MODEL)))
    assert reply.status_code == 200, reply.text
    got = parts(reply.text)
    assert [path for path in sent.reads if not any(has(part, path) for part in got)] == []
    assert not any("error" in part for part in got)


def test_vim_plugin_gets_one_line_through_curl(coder: Daemon) -> None:
    """It pipes its request into curl and takes each line of what comes out for a whole answer."""
    sent = sent_by("llama.vim", "fills in at the cursor")
    command = ["curl", "--silent", "--no-buffer", "--request", "POST", "--url", coder.url + sent.path]
    headers = ["--header", "Content-Type: application/json", "--header", "Authorization: Bearer "]
    done = subprocess.run(
        [*command, *headers, "--data", "@-"],
        input=json.dumps(sent.body).encode(),
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == 0
    (line,) = done.stdout.splitlines()
    answer = json.loads(line)
    assert set(answer) == set(sent.body["response_fields"])
    assert answer["timings/predicted_n"] <= 128


def test_warmed_pieces_of_files_are_not_computed_again(coder: Daemon) -> None:
    warming = sent_by("llama.vim", "warms the cache with pieces of files, of whose answer it reads nothing")
    filling = sent_by("llama.vim", "fills in at the cursor")
    pieces = [{"text": "z = 1  # not seen before\n" * 20, "filename": "warm.py"}]
    warmed = coder.http.post("/infill", json={**warming.body, "input_extra": pieces})
    assert warmed.json() == {}
    asked = {**filling.body, "input_extra": pieces, "n_predict": 4, "response_fields": None}
    timings = coder.http.post("/infill", json=asked).json()["timings"]
    assert timings["cache_n"] > 400
    assert timings["prompt_n"] < 120
