from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, DOWNLOAD, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store
from llmrun.store.peeking import peek_at
from tests.store.models import gguf_bytes
from tests.store.server import Host
from tests.support.tiny import Shape, write_llama

REPO = "Org/Model-GGUF"


def large(folder: Path) -> bytes:
    return write_llama(folder / "large.gguf", Shape(embd=256, layers=8, ff=1024)).read_bytes()


def test_peek_of_a_remote_model_reads_only_its_header(
    hub: Host, store: Store, paths: Paths, tmp_path: Path
) -> None:
    data = large(tmp_path)
    assert len(data) > 20 << 20
    hub.put_repository(REPO, {"M-Q4_0.gguf": data})
    peek = store.peek(f"hf.co/{REPO}:Q4_0")
    here = peek_at(store.resolve(str(tmp_path / "large.gguf")))
    assert peek.remote
    assert peek.headers == here.headers
    assert (peek.model.parameters, peek.model.size) == (here.model.parameters, len(data))
    assert sum(seen.sent for seen in hub.requests) < 1 << 20
    assert not paths.models.exists()


def test_peek_by_url_needs_no_length_stated(host: Host, store: Store, tmp_path: Path) -> None:
    peek = store.peek(host.put("/m.gguf", large(tmp_path)))
    assert peek.model.architecture == "llama"


def test_peek_of_a_model_that_is_here_asks_nobody(host: Host, store: Store, tmp_path: Path) -> None:
    url = host.put("/m.gguf", gguf_bytes(tmp_path))
    name = store.pull(url).name
    host.requests.clear()
    peek = store.peek(name)
    assert not peek.remote
    assert peek.headers[0].tensors
    assert host.requests == []


def test_peek_catalogue_entry_falls_through_to_the_next_source(
    host: Host, store: Store, catalogue: Path, tmp_path: Path
) -> None:
    url = host.put("/m.gguf", large(tmp_path))
    missing = host.url("/gone.gguf")
    (catalogue / "a@b.modelfile").write_text(
        f"FROM {missing}\nSOURCE {url}\nSHA256 {'0' * 64}\nSYSTEM Hi\nPARAMETER top_k 3\n"
    )
    peek = store.peek("a:b")
    assert (peek.model.name, peek.model.system, peek.model.options.top_k) == ("a:b", "Hi", 3)


def test_peek_faults_say_what_is_wrong(host: Host, store: Store) -> None:
    with pytest.raises(LlmrunError) as caught:
        store.peek("no-such-model")
    assert caught.value.kind is UNKNOWN_MODEL
    with pytest.raises(LlmrunError) as caught:
        store.peek(host.put("/x.gguf", b"GGML" + bytes(1 << 20)))
    assert caught.value.kind is BAD_FILE
    assert "x.gguf" in caught.value.message
    with pytest.raises(LlmrunError) as caught:
        store.peek(host.url("/none.gguf"))
    assert caught.value.kind is not DOWNLOAD or "none.gguf" in caught.value.message
