from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from llmrun.llama import Batch, Context, ContextSettings, DecodeStatus, Model
from tests.support.tiny import write_llama


def _resident(path: Path) -> int:
    """Bytes of a file that are resident in this process's mappings of it."""
    bytes_, ours = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split()[0]:
            ours = line.endswith(str(path.resolve()))
        elif ours and line.startswith("Rss:"):
            bytes_ += int(line.split()[1]) * 1024
    return bytes_


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_model_just_loaded_through_a_link_holds_no_page_of_its_file_and_computes(tmp_path: Path) -> None:
    folder = tmp_path / "files"
    folder.mkdir()
    path = write_llama(folder / "tiny.gguf")
    link = tmp_path / "link.gguf"
    link.symlink_to(path)
    model = Model(link)
    try:
        assert str(path.resolve()) in Path("/proc/self/maps").read_text()
        assert _resident(path) == 0
        context = Context(model, ContextSettings(ctx=64, batch=8, slots=1, threads=1, threads_batch=1))
        batch = Batch(8)
        batch.add(np.array([1, 2, 3], np.int32), 0, 0, outputs=1)
        assert context.decode(batch) is DecodeStatus.OK
        assert _resident(path) > 0
        assert np.isfinite(context.logits(2)).all()
    finally:
        model.close()
