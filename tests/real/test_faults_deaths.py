"""A daemon is killed in every phase of what it does. Each time: no process is left, no model is lost or half
there, and the next daemon on the same folder works, which is the one that is killed next."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from llmrun.store.housekeeping import Housekeeper
from tests.real.daemons import Daemon, eventually, has_ended, linked_home
from tests.store.server import Fault, Host, serving
from tests.support.tiny import Shape, write_llama

pytestmark = pytest.mark.real

ENDLESS = {
    "model": DEFAULT_MODEL,
    "prompt": "Once upon a time",
    "max_tokens": 1900,
    "ignore_eos": True,
    "stream": True,
}
LONG = "The cat sat on the mat and then it went away. " * 140
SHORT = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2}


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as running:
        yield running


def kill(daemon: Daemon) -> None:
    """End it by force; its processes must follow by themselves."""
    children = psutil.Process(daemon.process.pid).children(recursive=True)
    daemon.process.kill()
    daemon.process.communicate()
    daemon.http.close()
    assert eventually(lambda: all(map(has_ended, children)), 5), "a process outlived its daemon"


class Asking:
    """A request in a thread of its own, whose daemon will die. `lines` has what came of the reply."""

    def __init__(self, daemon: Daemon, path: str, body: dict[str, Any]) -> None:
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._ask, args=(daemon, path, body))
        self._thread.start()

    def _ask(self, daemon: Daemon, path: str, body: dict[str, Any]) -> None:
        with (
            suppress(httpx.TransportError),
            httpx.Client(timeout=60) as http,
            http.stream("POST", daemon.url + path, json=body) as reply,
        ):
            for line in reply.iter_lines():
                self.lines.append(line)

    def saw(self, words: str) -> bool:
        return any(words in line for line in self.lines)

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), "a client waits for a daemon that is dead"


def states(daemon: Daemon) -> list[str]:
    return [model["state"] for model in daemon.loaded()]


def in_flight(daemon: Daemon) -> int:
    return sum(model["in_flight"] for model in daemon.loaded())


def test_daemon_killed_in_every_phase_of_a_generation_is_followed_by_one_that_works(
    home: Path, tmp_path: Path
) -> None:
    place = linked_home(home, tmp_path / "home")
    grammar = {**ENDLESS, "json_schema": {"enum": [f"value number {i}" for i in range(20_000)]}}
    phases: dict[str, tuple[dict[str, Any], Callable[[Daemon], bool]]] = {
        "loading": (ENDLESS, lambda daemon: states(daemon) == ["loading"]),
        "prefill": ({**ENDLESS, "prompt": LONG}, lambda daemon: in_flight(daemon) == 1),
        "a grammar": (grammar, lambda daemon: in_flight(daemon) == 1),
        "decode": (ENDLESS, lambda daemon: daemon.loaded()[0]["stats"]["completion_tokens"] > 8),
    }
    running = Daemon(place, LLMRUN_CTX="2048")
    for phase, (body, holds) in phases.items():
        if phase != "loading":
            assert running.http.post("/v1/completions", json=SHORT).status_code == 200, phase
        asking = Asking(running, "/v1/completions", body)
        assert eventually(lambda: holds(running), 20), phase  # noqa: B023 (called in this round)
        kill(running)
        asking.join()
        assert not asking.saw("[DONE]")
        running = Daemon(place, LLMRUN_CTX="2048")
    assert running.http.post("/v1/completions", json=SHORT).status_code == 200
    running.close()


def test_daemon_killed_after_its_runners_ended_leaves_a_folder_that_works(home: Path, tmp_path: Path) -> None:
    """The last phase of a shutdown; tests/real/test_lifecycle.py has the first."""
    place = linked_home(home, tmp_path / "home")
    running = Daemon(place, LLMRUN_CTX="512")
    assert running.http.post("/v1/completions", json=SHORT).status_code == 200
    runner = running.runner()
    running.process.terminate()
    assert eventually(lambda: has_ended(runner), 20)
    running.process.kill()
    running.process.communicate()
    running.http.close()
    again = Daemon(place, LLMRUN_CTX="512")
    assert again.http.post("/v1/completions", json=SHORT).status_code == 200
    again.close()


def whole_models(place: Path) -> dict[str, bytes]:
    """Every model by name with the bytes of its first file: what is listed is there in full."""
    return {
        model.name: model.path.read_bytes() for model in Store(Paths.find({"LLMRUN_HOME": str(place)})).list()
    }


def litter(place: Path) -> list[object]:
    return list(Housekeeper(Paths.find({"LLMRUN_HOME": str(place)})).litter())


def test_daemon_killed_in_every_phase_of_a_pull_loses_nothing(tmp_path: Path, host: Host) -> None:
    place = tmp_path / "home"
    path = "/large-F32.gguf"
    data = write_llama(tmp_path / "large.gguf", Shape(embd=512, layers=4, heads=8, ff=1024)).read_bytes()
    url = host.put(path, data)
    let_go = threading.Event()
    phases: dict[str, Callable[[Asking], bool]] = {
        "asking": lambda _: bool(host.requests),
        "fetching": lambda _: host.sent(path) > 0.3 * len(data),
        "verifying": lambda asking: asking.saw("verifying"),
        "done": lambda asking: asking.saw("success"),
    }
    running = Daemon(place)
    for phase, holds in phases.items():
        host.requests.clear()
        if phase == "asking":
            host.faults[path].append(Fault(before=lambda: let_go.wait(30)))
        asking = Asking(running, "/api/pull", {"model": url})
        assert eventually(lambda: holds(asking), 30), phase  # noqa: B023 (called in this round)
        kill(running)
        let_go.set()
        asking.join()
        assert whole_models(place) in ({}, {"large:F32": data}), phase
        running = Daemon(place)
        again = running.http.post("/api/pull", json={"model": url, "stream": False})
        assert again.json() == {"status": "success"}, phase
        assert whole_models(place) == {"large:F32": data}, phase
        assert running.run("rm", "large:F32").returncode == 0
        assert running.run("prune").returncode == 0
        assert [
            file for file in (place / "models").rglob("*.*") if file.suffix not in (".lock", ".json")
        ] == []
        assert litter(place) == []
    running.close()


def quantizes(daemon: Daemon) -> bool:
    """Whether a process of its own is at it."""
    children = psutil.Process(daemon.process.pid).children()
    with suppress(psutil.NoSuchProcess):
        return any("llmrun.llama.quantizer" in child.cmdline() for child in children)
    return False


def test_daemon_killed_in_every_phase_of_a_create_loses_nothing(tmp_path: Path) -> None:
    place = tmp_path / "home"
    base = write_llama(tmp_path / "base-F32.gguf", Shape(embd=512, layers=3, heads=8, ff=1024))
    body = {"model": "made", "from": str(base), "quantize": "Q8_0"}
    phases: dict[str, Callable[[Asking, Daemon], bool]] = {
        "reading": lambda asking, _: asking.saw("reading"),
        "quantizing": lambda _, daemon: quantizes(daemon),
        "writing": lambda asking, _: asking.saw("quantizing"),
        "done": lambda asking, _: asking.saw("success"),
    }
    running = Daemon(place, LLMRUN_CTX="256")
    for phase, holds in phases.items():
        asking = Asking(running, "/api/create", body)
        assert eventually(lambda: holds(asking, running), 60), phase  # noqa: B023 (called in this round)
        kill(running)
        asking.join()
        running = Daemon(place, LLMRUN_CTX="256")
        names = [model["name"] for model in running.http.get("/api/tags").json()["models"]]
        assert names in ([], ["made"]), phase
        if not names:
            made = running.http.post("/api/create", json={**body, "stream": False})
            assert made.json() == {"status": "success"}, phase
        assert running.http.post("/v1/completions", json={**SHORT, "model": "made"}).status_code == 200, phase
        assert base.exists()
        assert running.run("rm", "made").returncode == 0
        assert running.run("prune").returncode == 0
        assert litter(place) == []
    running.close()


def test_daemon_killed_in_an_upload_keeps_no_half_blob(tmp_path: Path) -> None:
    place = tmp_path / "home"
    running = Daemon(place)

    def pieces() -> Iterator[bytes]:
        yield bytes(1 << 20)
        assert eventually(lambda: any((place / "models").rglob("*.part")) or bool(_growing(place)), 20)
        kill(running)
        yield bytes(1 << 20)

    digest = "sha256:" + "0" * 64
    with suppress(httpx.TransportError):
        httpx.post(f"{running.url}/api/blobs/{digest}", content=pieces(), timeout=60)
    again = Daemon(place)
    assert again.http.head(f"/api/blobs/{digest}").status_code == 404
    assert again.run("prune").returncode == 0
    assert _growing(place) == []
    again.close()


def _growing(place: Path) -> list[Path]:
    return [file for file in (place / "models").rglob("*") if file.is_file() and file.stat().st_size > 1000]
