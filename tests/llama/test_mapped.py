from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from llmrun.llama import Batch, Context, ContextSettings, DecodeStatus, Model
from llmrun.llama.mapped import release
from llmrun.store.gguf import read_header
from tests.support.tiny import write_llama

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
PAGE = 4096


def _resident(path: Path) -> int:
    """Bytes of a file that are resident in this process's mappings of it."""
    bytes_, ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            ours = line.endswith(str(path.resolve()))
        elif ours and line.startswith("Rss:"):
            bytes_ += int(line.split()[1]) * 1024
    return bytes_


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A model behind a link."""
    folder = tmp_path / "files"
    folder.mkdir()
    link = tmp_path / "link.gguf"
    link.symlink_to(write_llama(folder / "tiny.gguf"))
    return link


def _computes(model: Model) -> None:
    context = Context(model, ContextSettings(ctx=64, batch=8, slots=1, threads=1, threads_batch=1))
    batch = Batch(8)
    batch.add(np.array([1, 2, 3], np.int32), 0, 0, outputs=1)
    assert context.decode(batch) is DecodeStatus.OK
    assert np.isfinite(context.logits(2)).all()


def test_model_just_loaded_holds_no_page_of_what_was_copied_and_reads_it_all_the_same(path: Path) -> None:
    whole = (0, path.stat().st_size + PAGE)
    model = Model(path, copied=lambda: {path: [whole]})
    try:
        assert str(path.resolve()) in Path("/proc/self/maps").read_text()
        assert _resident(path) == 0
        _computes(model)
        assert _resident(path) > 0
    finally:
        model.close()


def test_release_touches_no_page_that_is_not_wholly_in_a_part(path: Path) -> None:
    begin = -(-read_header(path).data_offset // PAGE) * PAGE
    model = Model(path)
    try:
        before = _resident(path)
        assert before > 4 * PAGE
        release({path: [(begin + 1, begin + 2 * PAGE - 1)]})
        assert _resident(path) == before
        release({path: [(begin + 1, begin + 2 * PAGE)]})
        assert _resident(path) == before - PAGE
        release({path.with_name("other.gguf"): [(0, begin + 9 * PAGE)]})
        assert _resident(path) == before - PAGE
        _computes(model)
    finally:
        model.close()
