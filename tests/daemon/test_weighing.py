from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.daemon import weighing
from llmrun.daemon.weighing import Weigher
from llmrun.runner.frames import Load
from llmrun.store import peeking
from llmrun.store.model import Beside
from llmrun.store.quants import expected_memory
from tests.daemon.fakes import stored
from tests.support.tiny import Shape, write_llama

GB = 1 << 30


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return write_llama(tmp_path / "m.gguf", Shape(ctx=8192, embd=256, heads=4, kv_heads=4, layers=4))


def load(path: Path, ctx: int | None = None) -> Load:
    return Load(name="a", path=str(path), ctx=ctx)


def test_weigh_follows_the_context_and_what_is_beside(path: Path) -> None:
    weigher = Weigher(lambda: 8 * GB)
    model = stored(path, ctx_train=8192)
    small, large = (weigher.weigh(model, load(path, ctx), "1") for ctx in (256, 8192))
    assert large - small >= (8192 - 256) * 4 * 2 * 256 * 2
    assert weigher.weigh(model, load(path), "1") == large  # nobody names one, and there is room for all
    beside = stored(path, ctx_train=8192, adapters=(Beside(path, "", 1000),), draft=Beside(path, "", 1))
    assert weigher.weigh(beside, load(path, 256), "2") > small + 1000


def test_cache_is_that_of_a_context_somebody_chose(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    weigher, model = Weigher(lambda: 8 * GB), stored(path)
    assert weigher.cache(model, load(path), "1") == 0
    assert weigher.cache(model, load(path, 2**20), "1") == 2**20 * 4 * 2 * 256 * 2
    assert weigher.cache(stored(path.with_name("gone")), load(path, 10**6), "2") == 0
    monkeypatch.setattr(weighing, "built_for_gpu", lambda: True)
    assert weigher.cache(model, load(path, 10**6), "1") == 0


def test_weigh_reads_the_file_once_a_version(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[Path] = []
    real = peeking.read_header
    monkeypatch.setattr(peeking, "read_header", lambda path: read.append(path) or real(path))
    weigher, model = Weigher(lambda: 8 * GB), stored(path)
    for version in ("1", "1", "2", "2"):
        weigher.weigh(model, load(path, 256), version)
    assert len(read) == 2


def test_weigh_of_a_file_that_cannot_be_read_goes_by_its_size(tmp_path: Path) -> None:
    model = stored(tmp_path / "gone.gguf", size=GB)
    assert Weigher().weigh(model, load(model.path), "1") == expected_memory(GB)
