"""A real daemon, each test its own, whose disk is full, whose memory is small, whose files are damaged."""

from __future__ import annotations

import resource
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.daemons import Daemon, eventually, linked_home

pytestmark = pytest.mark.real

SHORT = {"model": DEFAULT_MODEL, "prompt": "Hi", "max_tokens": 2}


def short(daemon: Daemon) -> int:
    return daemon.http.post("/v1/completions", json=SHORT).status_code


def test_log_on_a_full_disk_stops_nothing(home: Path) -> None:
    full = Path("/dev/full")
    if not full.exists():
        pytest.skip("there is no /dev/full")
    with full.open("wb") as log:
        running = Daemon(home, stderr=log, LLMRUN_CTX="512")
        try:
            assert short(running) == 200
            runner = running.runner()
            runner.kill()
            runner.wait(5)
            assert eventually(lambda: short(running) == 200, 20)
        finally:
            running.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A folder with room for 3 MB."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    made = mount and subprocess.run(
        [mount, "-t", "tmpfs", "-o", "size=3m", "tmpfs", place], capture_output=True
    )
    if not made or made.returncode:
        pytest.skip("mounting a small disk is not allowed here")
    yield place
    subprocess.run(["umount", place], check=True)


def test_kv_prefixes_on_a_full_disk_are_done_without(home: Path, tmp_path: Path, small_disk: Path) -> None:
    place = linked_home(home, tmp_path / "home")
    (place / "cache").mkdir()
    (place / "cache" / "kv").symlink_to(small_disk)
    running = Daemon(place, LLMRUN_CTX="512", LLMRUN_CACHE_DISK="1G", LLMRUN_CACHE_RAM="0")
    try:
        for number in range(4):
            body = {**SHORT, "prompt": f"{number} " + "word " * 250}
            assert running.http.post("/v1/completions", json=body).status_code == 200
        assert eventually(running.is_at_rest, 5)
    finally:
        running.close()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit is Linux's")
def test_too_little_memory_is_out_of_memory_wherever_it_runs_out_and_the_daemon_lives(home: Path) -> None:
    """From too little for Python's libraries, over too little for the weights, to too little for the context.
    Where exactly it runs out is the machine's business; what is said of it is ours."""
    running = Daemon(home, LLMRUN_CTX="8192")
    none = resource.RLIM_INFINITY
    try:
        for ahead in psutil.Process(running.process.pid).children():
            ahead.kill()  # the runner that was started ahead has no bound
        for number, megabytes in enumerate((250, 330, 410, 450, 550, 700)):
            # A child inherits the bound; the daemon itself is far below it.
            resource.prlimit(running.process.pid, resource.RLIMIT_AS, (megabytes << 20, none))
            # Of another context each time: what fails twice in a row is made to wait.
            reply = running.http.post("/v1/completions", json={**SHORT, "ctx": 8192 - number})
            assert reply.status_code == 507, f"{megabytes} MB: {reply.text}"
            error = reply.json()["error"]
            assert error["code"] == "out_of_memory"
            assert (
                DEFAULT_MODEL in error["message"]
                or "8192" in error["message"]
                or "context" in error["message"]
            )
            assert running.http.get("/health").status_code == 200
            assert eventually(lambda: not running.loaded(), 10)
        resource.prlimit(running.process.pid, resource.RLIMIT_AS, (none, none))
        assert eventually(lambda: short(running) == 200, 30)
    finally:
        running.close()


def test_flipped_bits_in_a_manifest_are_named_and_the_other_models_work(home: Path, tmp_path: Path) -> None:
    place = tmp_path / "home"
    shutil.copytree(home / "models", place / "models", copy_function=shutil.copy2)
    store = Store(Paths.find({"LLMRUN_HOME": str(place)}))
    store.copy(DEFAULT_MODEL, "spare")
    manifest = next(path for path in (place / "models").rglob("*spare*") if path.is_file())
    raw = bytearray(manifest.read_bytes())
    running = Daemon(place, LLMRUN_CTX="512")
    try:
        for position in range(0, len(raw), max(1, len(raw) // 12)):
            flipped = bytearray(raw)
            flipped[position] ^= 0x80
            manifest.write_bytes(flipped)
            reply = running.http.post("/v1/completions", json={**SHORT, "model": "spare"})
            assert reply.status_code in (200, 404, 422, 500, 507), reply.text
            assert "Traceback" not in reply.text
            if reply.status_code != 200:
                assert "spare" in reply.json()["error"]["message"]
            assert short(running) == 200
    finally:
        running.close()


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="prlimit is Linux's")
def test_daemon_without_memory_for_a_request_is_a_503_and_serves_on(home: Path) -> None:
    """Lists of nothing take twenty times the body's bytes once they are read."""
    running = Daemon(home, LLMRUN_CTX="512")
    none = resource.RLIM_INFINITY
    huge = b'{"model": "m", "messages": [], "metadata": [' + b"[]," * 5_000_000 + b"[]]}"
    headers = {"content-type": "application/json"}
    try:
        assert short(running) == 200
        room = psutil.Process(running.process.pid).memory_info().data + (120 << 20)
        resource.prlimit(running.process.pid, resource.RLIMIT_DATA, (room, none))
        for _ in range(3):
            refused = running.http.post("/v1/chat/completions", content=huge, headers=headers)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "5")
            assert short(running) == 200
        resource.prlimit(running.process.pid, resource.RLIMIT_DATA, (none, none))
        assert running.http.post("/v1/chat/completions", content=huge, headers=headers).status_code == 400
        assert eventually(running.is_at_rest, 5)
    finally:
        running.close()
