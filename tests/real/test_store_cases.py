"""Cases of the field that need a daemon which stays alive: hostile files, deaths in the middle, odd paths,
models in parts, a hub that is silent. The models are tiny and random; all else is real."""

from __future__ import annotations

import hashlib
import json
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import gguf
import httpx
import numpy as np
import pytest

from llmrun.config import Paths
from llmrun.store import Store
from llmrun.store.disk import BLOCK
from tests.real.daemons import Daemon, eventually
from tests.store.models import header, tensor
from tests.store.server import Fault, Host, serving
from tests.support.tiny import Shape, write_llama, write_lora

pytestmark = pytest.mark.real

ODD = "ho me 模型\u3000🦙"
MB = 1 << 20
CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 4, "temperature": 0}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose name holds what careless code trips over."""
    folder = tmp_path_factory.mktemp("cases") / ODD
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def daemon(place: Path) -> Iterator[Daemon]:
    temporary = place / "tem por　ary"
    temporary.mkdir()
    running = Daemon(place / "home", LLMRUN_CTX="256", TMPDIR=str(temporary), HOME=str(place))
    yield running
    running.close()


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as running:
        yield running


def asked(daemon: Daemon, model: str) -> tuple[int, dict[str, object]]:
    reply = daemon.http.post("/v1/chat/completions", json={"model": model, **CHAT})
    return reply.status_code, reply.json()


HOSTILE = {
    "B92 just the magic": b"GGUF",
    "B92 nothing": b"",
    "B94 offset beyond the end": header(tensors=(tensor("t", (8,), 0, 1 << 40),), data=64),
    "B94 size beyond the end": header(tensors=(tensor("t", (1 << 30,), 0, 0),), data=64),
}


@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_file_is_refused_and_the_daemon_lives(daemon: Daemon, place: Path, case: str) -> None:
    path = place / f"{case}.gguf"
    path.write_bytes(HOSTILE[case])
    pid = daemon.process.pid
    status, body = asked(daemon, str(path))
    assert 400 <= status < 500, body
    assert case in json.dumps(body)
    made = daemon.http.post("/api/create", json={"model": "evil", "from": str(path), "stream": False})
    assert 400 <= made.status_code < 500
    shown = daemon.run("show", str(path))
    assert (shown.returncode, shown.stdout) == (1, b"")
    assert b"Traceback" not in shown.stderr
    assert daemon.http.get("/health").status_code == 200
    assert daemon.process.poll() is None
    assert daemon.process.pid == pid
    assert b"evil" not in daemon.run("list").stdout


def test_odd_paths_pull_run_template_and_adapter_work(daemon: Daemon, place: Path, host: Host) -> None:
    """B91."""
    files = place / "files　of mine"
    files.mkdir()
    url = host.put("/tiny-F32.gguf", write_llama(files / "tiny.gguf").read_bytes())
    assert daemon.run("pull", url).returncode == 0
    assert daemon.run("run", "tiny:F32", "hi", "--max-tokens", "4").returncode == 0
    rendered = daemon.run("template", "render", "tiny:F32", stdin=b'[{"role": "user", "content": "hi"}]')
    assert b"<|im_start|>user\nhi<|im_end|>" in rendered.stdout
    template = files / "my template　模.jinja"
    template.write_text("T:{{ messages[0].content }}", "utf-8")
    rendered = daemon.run(
        "template", "render", "--template", str(template), stdin=b'[{"role": "user", "content": "hi"}]'
    )
    assert rendered.stdout.startswith(b"T:hi")
    write_lora(files / "lo ra 模.gguf")
    modelfile = files / "Model file"
    modelfile.write_text("FROM ./tiny.gguf\nADAPTER ./lo ra 模.gguf\n", "utf-8")
    made = daemon.run("create", "adapted", "-f", str(modelfile))
    assert made.returncode == 0, made.stderr
    plain, adapted = (asked(daemon, name)[1]["choices"] for name in ("tiny:F32", "adapted"))
    assert plain != adapted
    shown = daemon.run("show", "adapted", "--modelfile").stdout.decode()
    assert f"ADAPTER {files / 'lo ra 模.gguf'}" in shown
    again = daemon.run("create", "again", "-f", "-", stdin=shown.encode())
    assert again.returncode == 0, again.stderr
    assert asked(daemon, "again")[1]["choices"] == adapted


def test_file_taken_in_has_the_hash_of_the_original(daemon: Daemon, place: Path) -> None:
    """B84: as an upload, and in place."""
    data = write_llama(place / "hashed.gguf", Shape(seed=9)).read_bytes()
    digest = f"sha256:{hashlib.sha256(data).hexdigest()}"
    assert daemon.http.post(f"/api/blobs/{digest}", content=data).status_code == 201
    body = {"model": "uploaded", "files": {"x.gguf": digest}, "stream": False}
    assert daemon.http.post("/api/create", json=body).status_code == 200
    assert daemon.run("cp", str(place / "hashed.gguf"), "inplace").returncode == 0
    store = Store(Paths.find({"LLMRUN_HOME": str(place / "home")}))
    for name in ("uploaded", "inplace"):
        stored = store.resolve(name).path
        assert hashlib.sha256(stored.read_bytes()).hexdigest() == digest.removeprefix("sha256:")
    assert store.resolve("inplace").path == place / "hashed.gguf"


def split(path: Path, folder: Path, stem: str) -> list[Path]:
    """The model at `path` in two parts, as llama.cpp's `gguf-split` names and marks them."""
    reader = gguf.GGUFReader(path)
    half = len(reader.tensors) // 2
    parts = [reader.tensors[:half], reader.tensors[half:]]
    made = []
    for number, tensors in enumerate(parts):
        target = folder / f"{stem}-0000{number + 1}-of-00002.gguf"
        writer = gguf.GGUFWriter(target, "llama")
        for key, field in reader.fields.items():
            if number == 0 and not key.startswith("GGUF.") and key != "general.architecture":
                kind = field.types[0]
                sub = field.types[-1] if kind == gguf.GGUFValueType.ARRAY else None
                writer.add_key_value(key, field.contents(), kind, sub_type=sub)
        writer.add_uint16("split.no", number)
        writer.add_uint16("split.count", 2)
        writer.add_int32("split.tensors.count", len(reader.tensors))
        for one in tensors:
            writer.add_tensor(one.name, np.array(one.data), raw_dtype=one.tensor_type)
        writer.write_header_to_file()
        writer.write_kv_data_to_file()
        writer.write_tensors_to_file()
        writer.close()
        made.append(target)
    return made


def test_model_in_parts_beside_other_quants_is_pulled_run_and_removed(
    place: Path, tmp_path: Path, host: Host
) -> None:
    """B86, and B87: a quant that is not there is answered with those that are."""
    whole = write_llama(tmp_path / "whole.gguf", Shape(seed=4))
    parts = split(whole, tmp_path, "m-F32")
    other = write_llama(tmp_path / "m-Q8_0.gguf", Shape(seed=5)).read_bytes()
    files = {part.name: part.read_bytes() for part in parts}
    host.put_repository("Org/M-GGUF", {**files, "m-Q8_0.gguf": other})
    running = Daemon(place / "parts", LLMRUN_CTX="256", HF_ENDPOINT=host.address, HOME=str(place))
    try:
        missing = running.run("pull", "hf.co/Org/M-GGUF:Q5_K_M")
        assert missing.returncode == 1
        assert b"there are: F32, Q8_0" in missing.stderr
        missing = running.run("pull", "hf.co/Org/M-GGUF/none.gguf")
        assert b"404" in missing.stderr
        assert all(name.encode() in missing.stderr for name in files)
        assert running.run("pull", "hf.co/Org/M-GGUF:F32").returncode == 0
        said = asked(running, "m:F32")
        assert said[0] == 200, said
        assert said[1]["choices"] == asked(running, str(whole))[1]["choices"]
        assert running.run("rm", "m:F32").returncode == 0
        assert list((place / "parts" / "models" / "files").glob("**/*.gguf")) == []
    finally:
        running.close()


def test_daemon_killed_in_the_middle_of_a_pull_goes_on_from_there(place: Path, host: Host) -> None:
    """B77."""
    shape = Shape(embd=512, layers=6, heads=8, ff=2048)
    data = write_llama(place / "large.gguf", shape).read_bytes()
    url = host.put("/large-F32.gguf", data)
    running = Daemon(place / "killed", HOME=str(place))

    def pull() -> None:
        with suppress(httpx.TransportError):  # the daemon dies under it
            running.http.post("/api/pull", json={"model": url, "stream": False})

    asking = threading.Thread(target=pull)
    asking.start()
    assert eventually(lambda: host.sent("/large-F32.gguf") > 0.6 * len(data), 30)
    running.process.send_signal(signal.SIGKILL)
    running.process.communicate()
    running.http.close()
    asking.join(30)
    first = host.sent("/large-F32.gguf")
    running = Daemon(place / "killed", HOME=str(place))
    try:
        assert running.http.get("/api/tags").json()["models"] == []
        kept = sum(part.stat().st_blocks * 512 for part in (place / "killed").glob("**/*.part"))
        assert running.http.post("/api/pull", json={"model": url, "stream": False}).status_code == 200
        again = host.sent("/large-F32.gguf") - first
        assert again <= len(data) - min(kept, first) + 4 * BLOCK
        assert again < 0.7 * len(data)
        (stored,) = Store(Paths.find({"LLMRUN_HOME": str(place / "killed")})).list()
        assert stored.path.read_bytes() == data
    finally:
        running.close()


def test_model_starts_where_the_hub_is_silent_or_busy(place: Path, tmp_path: Path, host: Host) -> None:
    """B88: offline, and a hub that answers 429."""
    data = write_llama(tmp_path / "m.gguf", Shape(seed=6)).read_bytes()
    host.put_repository("Org/M-GGUF", {"m-F32.gguf": data})
    environment = {"HF_ENDPOINT": host.address, "HOME": str(place)}
    running = Daemon(place / "silent", LLMRUN_CTX="256", **environment)
    try:
        assert running.run("pull", "hf.co/Org/M-GGUF:F32").returncode == 0
        host.faults["/api/models/Org/M-GGUF"].extend([Fault(status=429)] * 20)
        for more in ({}, {"HF_HUB_OFFLINE": "1"}):
            again = running.run("pull", "hf.co/Org/M-GGUF:F32", **more)
            assert again.returncode == 0, again.stderr
            assert b"stays as it is here" in again.stderr
            assert (
                running.run("run", "hf.co/Org/M-GGUF:F32", "hi", "--max-tokens", "2", **more).returncode == 0
            )
    finally:
        running.close()


def test_command_killed_in_the_middle_of_a_pull_leaves_nothing_unowned(place: Path, host: Host) -> None:
    """What a killed pull left is shown by prune to the byte, and goes with it."""
    data = write_llama(place / "left.gguf", Shape(embd=512, layers=4, heads=8, ff=2048)).read_bytes()
    url = host.put("/left-F32.gguf", data)
    home = place / "left"
    running = Daemon(home, HOME=str(place))
    try:
        child = subprocess.Popen(
            [sys.executable, "-m", "llmrun", "pull", url],
            env=running.env,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        assert eventually(lambda: host.sent("/left-F32.gguf") > 2 * MB, 30)
        child.kill()
        child.wait()
        assert b"left" not in running.run("list").stdout
        told = json.loads(running.run("prune", "--dry-run", "--json").stdout)
        assert [one["kind"] for one in told] == ["partial"]
        used = sum(path.lstat().st_blocks * 512 for path in (home / "models" / "partial").rglob("*"))
        assert sum(one["size"] for one in told) == used
        assert running.run("prune").returncode == 0
        assert json.loads(running.run("prune", "--dry-run", "--json").stdout) == []
        assert list((home / "models" / "partial").iterdir()) == []
    finally:
        running.close()
