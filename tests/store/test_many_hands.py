"""Several processes pull, create, copy, remove, prune and list at once, and are killed at random moments."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from llmrun.config import Paths
from llmrun.store import Store
from llmrun.store.disk import sha256_of
from llmrun.store.housekeeping import Housekeeper
from llmrun.store.manifest import Manifest
from tests.store.conftest import files_under
from tests.store.models import gguf_bytes
from tests.store.server import Host
from tests.support.tiny import Shape, write_llama, write_lora

HANDS = 3
DEATHS = 5

HAND = """
import random, sys
from llmrun.config import Paths
from llmrun.errors import BAD_FILE, CONFLICT, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store, parse_modelfile
from llmrun.store.housekeeping import Housekeeper

seed, base, lora, *urls = sys.argv[1:]
rng = random.Random(int(seed))
store, keeper = Store(Paths.find()), Housekeeper(Paths.find())
print("started", flush=True)
while True:
    names = [model.name for model in store.list()] or ["none"]
    try:
        match rng.randrange(12):
            case 0 | 1 | 2 | 3:
                store.pull(rng.choice(urls))
            case 4 | 5:
                store.remove(rng.choice(names))
            case 6:
                store.copy(rng.choice(names), f"copy-{rng.randrange(3)}")
            case 7:
                store.resolve(rng.choice(names))
            case 8:
                keeper.prune()
            case 9 | 10 | 11:
                beside = rng.choice(["SYSTEM x", f"ADAPTER {lora}", f"DRAFT {rng.choice(urls)}"])
                made = parse_modelfile(f"FROM {rng.choice([base, base, *names])}\\n{beside}")
                store.create(f"made-{rng.randrange(3)}", made)
    except LlmrunError as error:
        if error.kind not in (BAD_FILE, CONFLICT, UNKNOWN_MODEL):  # an adapter over another base
            sys.exit(f"{error.kind.code}: {error}")
"""


class Hands:
    def __init__(self, home: Path, urls: list[str], log: Path) -> None:
        self.home, self.urls, self.log = home, urls, log
        self.started = 0
        self.running: list[subprocess.Popen[bytes]] = []

    def start(self) -> None:
        self.started += 1
        with self.log.open("ab") as log:
            self.running.append(
                subprocess.Popen(
                    [sys.executable, "-c", HAND, str(self.started), *self.urls],
                    env={**os.environ, "LLMRUN_HOME": str(self.home)},
                    stdout=subprocess.PIPE,
                    stderr=log,
                )
            )
        stdout = self.running[-1].stdout
        assert stdout
        assert stdout.readline() == b"started\n"

    def kill(self, index: int) -> int:
        """End one in the middle of what it does; its exit code."""
        hand = self.running.pop(index)
        hand.send_signal(signal.SIGKILL)
        if hand.stdout:
            hand.stdout.close()
        return hand.wait()


@pytest.fixture
def urls(host: Host, tmp_path: Path) -> list[str]:
    base = write_llama(tmp_path / "base.gguf", Shape(embd=256)).read_bytes()
    lora = write_lora(tmp_path / "lora.gguf", Shape(embd=256)).read_bytes()
    plain = [gguf_bytes(tmp_path, size=1 << 20, seed=seed) for seed in range(3)]
    return [host.put(f"/{i}.gguf", data) for i, data in enumerate([base, lora, *plain])]


def test_store_many_processes_killed_at_random_never_lose_or_spoil_a_model(
    host: Host, paths: Paths, store: Store, urls: list[str], tmp_path: Path
) -> None:
    hands = Hands(paths.models.parent, urls, tmp_path / "log")
    rng = random.Random(7)
    codes = []
    try:
        for _ in range(HANDS):
            hands.start()
        for _ in range(DEATHS):
            time.sleep(rng.uniform(0.05, 0.4))  # not to wait for anything: the moment of death is random
            codes.append(hands.kill(rng.randrange(HANDS)))
            hands.start()
    finally:
        codes += [hands.kill(0) for _ in range(len(hands.running))]
    assert set(codes) == {-signal.SIGKILL}, (tmp_path / "log").read_text()

    for path in (paths.models / "manifests").glob("*.json"):
        msgspec.json.decode(path.read_bytes(), type=Manifest)
    for manifest in store._shelf.manifests.all():
        for entry, path in zip(manifest.files, store._shelf.manifests.paths(manifest), strict=True):
            assert sha256_of(path) == entry.sha256
    for url in [urls[0], *urls[2:]]:
        assert store.pull(url).path.read_bytes() == host.files[url.removeprefix(host.address)]
    keeper = Housekeeper(paths)
    keeper.prune()
    assert keeper.litter() == []
    assert {check.state for check in keeper.verify()} == {"ok"}
    for model in store.list():
        store.remove(model.name)
    assert [path for path in files_under(paths.models) if not path.startswith("locks/")] == []
