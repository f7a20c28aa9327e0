from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from llmrun.llama.quality import Job, Reader, compare, windows
from llmrun.store.native_child import ChildError, said_by
from tests.support.tiny import write_llama

TEXT = "the quick brown fox jumps over the lazy dog " * 4


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_llama(tmp_path_factory.mktemp("quality") / "one.gguf")


def test_windows_leave_out_a_single_last_token() -> None:
    assert list(windows([1, 2, 3, 4, 5, 6, 7], 3)) == [[1, 2, 3], [4, 5, 6]]
    assert list(windows([1, 2, 3, 4, 5], 3)) == [[1, 2, 3], [4, 5]]


def test_log_probabilities_are_a_distribution_in_every_row(path: Path) -> None:
    reader = Reader(path, Job(reference=str(path), models=[], text=TEXT, window=32))
    try:
        window = reader.tokens(TEXT)[:32]
        rows = reader.log_probabilities(window)
        assert rows.shape == (31, reader.vocabulary)
        np.testing.assert_allclose(np.exp(rows).sum(axis=1), 1, atol=1e-4)
        np.testing.assert_array_equal(rows, reader.log_probabilities(window))
    finally:
        reader.close()


def test_compare_a_model_with_itself_has_no_divergence(path: Path) -> None:
    job = Job(reference=str(path), models=[], text=TEXT, window=32)
    one, same = Reader(path, job), Reader(path, job)
    try:
        found = compare(one, same, job)
    finally:
        one.close()
        same.close()
    assert found["kl_mean"] == pytest.approx(0, abs=1e-6)
    assert found["same_top"] == 1
    assert found["tokens"] > 20
    assert found["perplexity"] > 1


def test_child_that_cannot_load_says_so(path: Path) -> None:
    job = {"reference": str(path), "models": [str(path.parent / "no.gguf")], "text": TEXT}
    with pytest.raises(ChildError, match="cannot load"):
        list(said_by("llmrun.llama.quality", job))
