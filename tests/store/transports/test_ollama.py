"""An Ollama registry, played by the server, also a hostile one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, DIGEST, DOWNLOAD, NOT_FOUND, Kind, LlmrunError
from llmrun.store import Store
from llmrun.store.disk import BLOCK
from tests.store.conftest import files_under, sha256
from tests.store.models import gguf_bytes
from tests.store.server import Fault, Host

CHATML = (
    "{{ if .System }}<|im_start|>system\n{{ .System }}<|im_end|>\n{{ end }}"
    "<|im_start|>user\n{{ .Prompt }}<|im_end|>\n<|im_start|>assistant\n{{ .Response }}<|im_end|>\n"
)


@pytest.fixture
def model(tmp_path: Path) -> bytes:
    return gguf_bytes(tmp_path, size=5 << 20)


def reference(host: Host, rest: str = "library/tiny:1b") -> str:
    return f"ollama://{host.address.removeprefix('http://')}/{rest}"


def test_pull_brings_weights_projector_and_what_the_registry_says(
    host: Host, store: Store, model: bytes, tmp_path: Path
) -> None:
    projector = gguf_bytes(tmp_path, architecture="clip")
    parameters = {"temperature": 0.5, "stop": ["<|end|>", "a\nb"], "num_ctx": 4096, "mystery": 1}
    layers = {
        "model": model,
        "projector": projector,
        "template": CHATML.encode(),
        "system": b"Be brief.",
        "params": json.dumps(parameters).encode(),
        "messages": b'[{"role": "user", "content": "hi"}, {"role": "assistant", "content": "yes?"}]',
        "license": b"MIT",
    }
    host.put_ollama("library/tiny", "1b", layers)
    notes: list[str] = []
    found = store.pull(reference(host), on_progress=lambda step: notes.append(step.text))
    assert (found.name, found.source, found.sha256) == ("tiny:1b", reference(host), sha256(model))
    assert [path.name for path in found.files] == ["tiny-1b.gguf", "mmproj-tiny-1b.gguf"]
    assert found.projector == found.files[1]
    assert found.projector.read_bytes() == projector
    assert found.path.read_bytes() == model
    assert (found.system, found.license, found.kind) == ("Be brief.", "MIT", "chat")
    assert (found.options.temperature, found.options.ctx) == (0.5, 4096)
    assert set(found.options.stop) == {"<|end|>", "a\nb"}
    assert found.template
    assert "messages" in found.template
    assert any("mystery" in note for note in notes)
    assert store.resolve("tiny") == found
    assert store.remove("tiny").freed == len(model) + len(projector)


def test_pull_models_own_template_wins_over_the_registrys(host: Host, store: Store, tmp_path: Path) -> None:
    model = gguf_bytes(tmp_path, text={"tokenizer.chat_template": "{{ messages[0].content }}"})
    host.put_ollama("me/tiny", "latest", {"model": model, "template": CHATML.encode()})
    found = store.pull(reference(host, "me/tiny"))
    assert (found.name, found.template, found.kind) == ("tiny", None, "chat")


def test_pull_again_takes_what_changed(host: Host, store: Store, tmp_path: Path) -> None:
    host.put_ollama("library/tiny", "1b", {"model": gguf_bytes(tmp_path, seed=1)})
    old = store.pull(reference(host))
    host.put_ollama("library/tiny", "1b", {"model": gguf_bytes(tmp_path, seed=2)})
    new = store.pull(reference(host))
    assert (old.name, old.sha256) != (new.name, new.sha256)
    assert store.list() == [new]


def test_pull_damaged_blob_costs_the_part_whose_sum_is_wrong(host: Host, store: Store, model: bytes) -> None:
    host.put_ollama("library/tiny", "1b", {"model": model}, sums=BLOCK)
    blob = f"/v2/library/tiny/blobs/sha256:{sha256(model)}"
    damaged = bytearray(model)
    damaged[3_000_000] ^= 1
    host.faults[blob].append(Fault(body=bytes(damaged)))
    assert store.pull(reference(host)).path.read_bytes() == model
    assert host.sent(blob) == len(model) + BLOCK


def test_pull_damaged_projector_is_mended_by_its_own_sums(
    host: Host, store: Store, model: bytes, tmp_path: Path
) -> None:
    projector = gguf_bytes(tmp_path, architecture="clip", size=4 << 20)
    host.put_ollama("library/tiny", "1b", {"model": model, "projector": projector}, sums=BLOCK)
    blob = f"/v2/library/tiny/blobs/sha256:{sha256(projector)}"
    damaged = bytearray(projector)
    damaged[2_000_000] ^= 1
    host.faults[blob].append(Fault(body=bytes(damaged)))
    found = store.pull(reference(host)).projector
    assert found
    assert found.read_bytes() == projector
    assert host.sent(blob) == len(projector) + BLOCK


@pytest.mark.parametrize(
    "digest",
    [
        "sha256:../../../../etc/passwd",
        "sha256:" + "a" * 63,
        "sha256:" + "A" * 64,
        "md5:" + "a" * 32,
        "../x",
        "",
        "sha256:" + "a" * 64 + "/../../x",
    ],
)
def test_pull_manifest_with_a_digest_that_is_none_is_refused_and_writes_nothing(
    host: Host, store: Store, tmp_path: Path, digest: str
) -> None:
    layer = {"mediaType": "application/vnd.ollama.image.model", "digest": digest, "size": 10}
    host.put_manifest("library/tiny", "1b", [layer])
    with pytest.raises(LlmrunError, match="no SHA-256") as caught:
        store.pull(reference(host))
    assert caught.value.kind is BAD_FILE
    assert [seen.path for seen in host.requests] == ["/v2/library/tiny/manifests/1b"]
    assert [path for path in files_under(tmp_path) if not path.endswith(".lock")] == []
    assert store.list() == []


def _layer(model: bytes, size: int) -> dict[str, object]:
    kind = "application/vnd.ollama.image.model"
    return {"mediaType": kind, "digest": f"sha256:{sha256(model)}", "size": size}


@pytest.mark.parametrize("lie", [-1, +1, -5_000_000, 10**15, -(10**9)])
def test_pull_manifest_that_lies_about_a_length_is_refused(
    host: Host, store: Store, paths: Paths, model: bytes, lie: int
) -> None:
    host.put_ollama("library/tiny", "1b", {"model": model})
    host.put_manifest("library/tiny", "1b", [_layer(model, len(model) + lie)])
    with pytest.raises(LlmrunError):
        store.pull(reference(host))
    assert store.list() == []
    assert files_under(paths.models / "partial") == []
    assert files_under(paths.models / "files") == []


def test_pull_blob_of_other_bytes_than_its_name_is_refused(
    host: Host, store: Store, paths: Paths, model: bytes
) -> None:
    host.put_ollama("library/tiny", "1b", {"model": model})
    host.put(f"/v2/library/tiny/blobs/sha256:{sha256(model)}", model[:-1] + b"!")
    with pytest.raises(LlmrunError) as caught:
        store.pull(reference(host))
    assert caught.value.kind is DIGEST
    assert store.list() == []
    assert files_under(paths.models / "partial") == []


def test_pull_small_layer_of_other_bytes_than_its_name_is_refused(
    host: Host, store: Store, model: bytes
) -> None:
    host.put_ollama("library/tiny", "1b", {"model": model, "system": b"Be kind."})
    host.put(f"/v2/library/tiny/blobs/sha256:{sha256(b'Be kind.')}", b"Be evil.")
    with pytest.raises(LlmrunError, match="system") as caught:
        store.pull(reference(host))
    assert caught.value.kind is DIGEST


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/x", "//"])
def test_pull_blob_that_leads_elsewhere_is_refused(
    host: Host, store: Store, paths: Paths, model: bytes, target: str
) -> None:
    host.put_ollama("library/tiny", "1b", {"model": model})
    host.redirects[f"/v2/library/tiny/blobs/sha256:{sha256(model)}"] = {"Location": target}
    with pytest.raises(LlmrunError):
        store.pull(reference(host))
    assert files_under(paths.models / "files") == []


@pytest.mark.parametrize(
    ("layers", "kind", "what"),
    [
        ({"system": b"cloud"}, NOT_FOUND, "has 0 GGUF files"),
        ({"model": b"GGUF", "params": b"["}, DOWNLOAD, "parameters"),
    ],
)
def test_pull_what_llmrun_cannot_run_is_refused_by_name(
    host: Host, store: Store, layers: dict[str, bytes], kind: Kind, what: str
) -> None:
    host.put_ollama("library/tiny", "1b", layers)
    with pytest.raises(LlmrunError, match=what) as caught:
        store.pull(reference(host))
    assert caught.value.kind is kind


@pytest.mark.parametrize(
    ("fault", "kind", "what"),
    [
        (Fault(status=404), NOT_FOUND, "no model tiny with the tag 1b"),
        (Fault(status=401), DOWNLOAD, "own key"),
        (Fault(body=b"{"), BAD_FILE, "damaged"),
        (Fault(body=b'{"layers": [{"mediaType": 1}]}'), BAD_FILE, "damaged"),
    ],
)
def test_pull_manifest_that_cannot_be_had_says_why(
    host: Host, store: Store, fault: Fault, kind: Kind, what: str
) -> None:
    host.files["/v2/library/tiny/manifests/1b"] = b"{}"
    host.faults["/v2/library/tiny/manifests/1b"].append(fault)
    with pytest.raises(LlmrunError) as caught:
        store.pull(reference(host))
    assert caught.value.kind is kind
    assert what in str(caught.value)
