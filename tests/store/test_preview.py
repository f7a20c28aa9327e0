from __future__ import annotations

import time
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import NOT_FOUND, USAGE, LlmrunError
from llmrun.store import PullProgress, Store
from llmrun.store.preview import PreviewFile
from tests.store.conftest import files_under
from tests.store.models import gguf_bytes, write_gguf
from tests.store.server import Host

REPO = "Org/Model-GGUF"


@pytest.fixture
def model(tmp_path: Path) -> bytes:
    return gguf_bytes(tmp_path, size=3 << 20)


def test_preview_names_what_would_come_and_fetches_nothing(
    hub: Host, store: Store, paths: Paths, model: bytes, tmp_path: Path
) -> None:
    projector = gguf_bytes(tmp_path, architecture="clip")
    hub.put_repository(REPO, {"M-Q8_0.gguf": model, "mmproj-F16.gguf": projector})
    told = store.preview(f"hf.co/{REPO}")
    assert told.source == f"hf.co/{REPO}:Q8_0"
    assert told.why.startswith("Q8_0")
    assert told.files == (
        PreviewFile("M-Q8_0.gguf", "weights", len(model), here=False),
        PreviewFile("mmproj-F16.gguf", "projector", len(projector), here=False),
    )
    assert (told.to_fetch, told.kept, told.fits_disk) == (len(model) + len(projector), 0, True)
    assert not paths.models.exists()
    assert [seen.path for seen in hub.requests] == [f"/api/models/{REPO}"]


def test_preview_counts_what_an_earlier_try_left(hub: Host, store: Store, model: bytes) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model})

    def stop(progress: PullProgress) -> None:
        if progress.completed >= 1 << 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        store.pull(f"hf.co/{REPO}", on_progress=stop)
    told = store.preview(f"hf.co/{REPO}")
    assert told.kept >= 1 << 20
    assert told.to_fetch is not None
    assert 0 < told.to_fetch <= len(model) - (1 << 20)


def test_preview_of_what_is_here_fetches_nothing(
    hub: Host, host: Host, store: Store, model: bytes, tmp_path: Path
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": model})
    store.pull(f"hf.co/{REPO}")
    url = host.put("/x.gguf", gguf_bytes(tmp_path))
    store.pull(url)
    path = write_gguf(tmp_path / "y.gguf")
    for reference in (f"hf.co/{REPO}:Q8_0", url, str(path)):
        told = store.preview(reference)
        assert told.to_fetch == 0
        assert all(file.here for file in told.files)


def test_pull_quant_chooses_from_a_repository_however_it_is_named(
    hub: Host, store: Store, catalogue: Path, tmp_path: Path
) -> None:
    hub.put_repository(
        REPO, {f"M-{quant}.gguf": gguf_bytes(tmp_path, seed=i) for i, quant in enumerate(["Q4_0", "Q8_0"])}
    )
    (catalogue / "tiny@1.modelfile").write_text(f"FROM hf.co/{REPO}/M-Q8_0.gguf")
    assert store.pull(f"hf.co/{REPO}", quant="q4_0").name == "model:Q4_0"
    assert store.pull("model:Q4_0", quant="Q8_0").name == "model:Q8_0"
    assert store.preview("tiny", quant="Q4_0").source == f"hf.co/{REPO}:Q4_0"
    with pytest.raises(LlmrunError) as caught:
        store.pull("tiny", quant="Q2_K")
    assert caught.value.kind is NOT_FOUND
    assert "there are: Q4_0, Q8_0" in caught.value.hint


@pytest.mark.parametrize(
    "reference",
    [f"hf.co/{REPO}:Q8_0", "https://example.org/x.gguf", "pypi://tiny", "ollama://tiny:1b", "./x.gguf"],
)
def test_pull_quant_of_what_has_none_is_refused(store: Store, reference: str) -> None:
    with pytest.raises(LlmrunError, match="is one file") as caught:
        store.pull(reference, quant="Q4_0")
    assert caught.value.kind is USAGE


def test_pull_limit_rate_is_kept(host: Host, store: Store, paths: Paths, model: bytes) -> None:
    start = time.monotonic()
    store.pull(host.put("/x.gguf", model), limit_rate=4 << 20)
    assert time.monotonic() - start >= 0.7  # 3 MB at 4 MB a second
    assert files_under(paths.models / "partial") == []


def test_pull_limit_rate_that_a_source_cannot_keep_is_refused(store: Store) -> None:
    with pytest.raises(LlmrunError, match="no rate limit"):
        store.pull("pypi://tiny-model", limit_rate=1000)
