"""Files that are damaged while nobody looks, and a disk with no room for a model: what a real daemon does."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.daemons import Daemon, eventually, linked_home
from tests.real.test_scarcity import small_disk
from tests.store.server import Host, serving
from tests.support.tiny import Shape, write_llama

pytestmark = pytest.mark.real

__all__ = ["small_disk"]  # a fixture

SHORT = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2}
LONG = {**SHORT, "prompt": "The cat sat on the mat. " * 60, "temperature": 0}


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as running:
        yield running


def truncated(data: bytes) -> bytes:
    return data[: len(data) // 3]


def flipped(data: bytes) -> bytes:
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


@pytest.mark.parametrize("spoil", [truncated, flipped, lambda _: b""], ids=["truncated", "flipped", "empty"])
def test_damaged_cache_costs_no_answer(home: Path, tmp_path: Path, spoil: Callable[[bytes], bytes]) -> None:
    """Saved KV and what was measured of this machine: all that can be computed anew."""
    place = linked_home(home, tmp_path / "home")
    running = Daemon(place, LLMRUN_CTX="1024", LLMRUN_CACHE_DISK="500M")
    try:
        first = running.http.post("/v1/completions", json=LONG).json()
        assert eventually(lambda: any((place / "cache" / "kv").glob("*/*.kv")), 20)
    finally:
        running.close()
    spoilt = [path for path in (place / "cache").rglob("*") if path.is_file()]
    for path in spoilt:
        path.write_bytes(spoil(path.read_bytes()))
    running = Daemon(place, LLMRUN_CTX="1024", LLMRUN_CACHE_DISK="500M")
    try:
        again = running.http.post("/v1/completions", json=LONG).json()
        assert again["choices"] == first["choices"]
        assert again["usage"]["prompt_tokens_details"]["cached_tokens"] == 0
    finally:
        running.close()


def test_truncated_weights_are_named_and_the_other_models_work(home: Path, tmp_path: Path) -> None:
    place = linked_home(home, tmp_path / "home")
    weights = write_llama(tmp_path / "cut.gguf")
    store = Store(Paths.find({"LLMRUN_HOME": str(place)}))
    store.copy(str(weights), "cut")
    whole = weights.read_bytes()
    running = Daemon(place, LLMRUN_CTX="512")
    try:
        for length in (0, 3, len(whole) // 100, len(whole) // 2, len(whole) - 1):
            weights.write_bytes(whole[:length])
            reply = running.http.post("/v1/completions", json={**SHORT, "model": "cut"})
            assert reply.status_code >= 400, (length, reply.text)
            error = reply.json()["error"]
            assert "cut" in error["message"], error
            assert error["code"] not in ("internal", "runner_died"), error
            assert running.http.post("/v1/completions", json=SHORT).status_code == 200
        checked = running.run("verify", "cut")
        assert checked.returncode != 0
    finally:
        running.close()


def test_pull_onto_a_full_disk_says_so_and_leaves_nothing(
    tmp_path: Path, small_disk: Path, host: Host
) -> None:
    place = tmp_path / "home"
    place.mkdir()
    (place / "models").symlink_to(small_disk)
    data = write_llama(tmp_path / "large.gguf", Shape(embd=256, layers=4)).read_bytes()
    url = host.put("/large.gguf", data)
    running = Daemon(place)
    try:
        reply = running.http.post("/api/pull", json={"model": url, "stream": False})
        assert reply.status_code == 507, reply.text
        assert "are free" in reply.json()["error"]
        assert running.run("pull", url).returncode != 0
        assert running.http.get("/health").status_code == 200
        assert running.http.get("/v1/models").json()["data"] == []
        assert [path for path in small_disk.rglob("*") if path.is_file() and path.suffix != ".lock"] == []
    finally:
        running.close()
