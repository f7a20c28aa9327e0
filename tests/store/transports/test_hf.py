"""The real Hub client against a server that plays the Hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download

from llmrun.errors import DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store.progress import Meter
from llmrun.store.reference import HubRef
from llmrun.store.transports import Offer, hf
from tests.store.conftest import sha256
from tests.store.server import COMMIT, Fault, Host

API = "/api/models/Org/Model-GGUF"
SMALL, LARGE = b"GGUF" + b"q4" * 500, b"GGUF" + b"q8" * 900
SHARDS = {f"BF16/M-BF16-0000{i}-of-00002.gguf": b"GGUF" + bytes([i]) * 100 for i in (1, 2)}


@pytest.fixture
def repository(hub: Host) -> Host:
    hub.put_repository(
        "Org/Model-GGUF",
        {
            "README.md": b"hi",
            "M-Q4_K_M.gguf": SMALL,
            "M-Q8_0.gguf": LARGE,
            **SHARDS,
        },
    )
    return hub


def offer(quant: str | None = None, file: str | None = None) -> Offer:
    return hf.offer(HubRef("Org/Model-GGUF", quant, file))


def fetch(quant: str, folder: Path) -> list[bytes]:
    chosen = offer(quant)
    return [file.path.read_bytes() for file in chosen.fetch(chosen.files, folder, Meter(None))]


def here(chosen: Offer) -> tuple[Path | None, ...]:
    return tuple(file.here for file in chosen.files)


@pytest.mark.usefixtures("repository")
def test_offer_names_file_size_and_digest_of_the_quant() -> None:
    chosen = offer("q4_k_m")
    assert chosen.source == "hf.co/Org/Model-GGUF:Q4_K_M"
    assert [(f.name, f.size, f.sha256) for f in chosen.files] == [
        ("M-Q4_K_M.gguf", len(SMALL), sha256(SMALL))
    ]
    assert (chosen.name, chosen.vendor, chosen.why) == ("Model:Q4_K_M", "Org", "")
    assert here(chosen) == (None,)


@pytest.mark.usefixtures("repository")
def test_offer_without_quant_chooses_and_explains() -> None:
    chosen = offer()
    assert chosen.source == "hf.co/Org/Model-GGUF:Q8_0"
    assert chosen.why.startswith("Q8_0")


@pytest.mark.usefixtures("repository")
def test_offer_file_is_found_whatever_its_letter_case() -> None:
    chosen = offer(file="m-q4_k_m.GGUF")
    assert chosen.source == "hf.co/Org/Model-GGUF/M-Q4_K_M.gguf"
    assert chosen.name == "M:Q4_K_M"


@pytest.mark.usefixtures("repository")
def test_offer_shards_come_together_under_bare_names(tmp_path: Path) -> None:
    assert [file.name for file in offer("BF16").files] == [Path(name).name for name in SHARDS]
    assert fetch("BF16", tmp_path) == list(SHARDS.values())


@pytest.mark.usefixtures("repository")
def test_fetch_follows_the_hubs_redirect(tmp_path: Path) -> None:
    assert fetch("Q4_K_M", tmp_path) == [SMALL]
    assert (tmp_path / "M-Q4_K_M.gguf").read_bytes() == SMALL


@pytest.mark.usefixtures("repository")
@pytest.mark.parametrize(
    ("quant", "file", "hint"),
    [("Q5_K_M", None, "there are: Q4_K_M, Q8_0, BF16"), (None, "none.gguf", "M-Q4_K_M.gguf, M-Q8_0.gguf")],
)
def test_offer_what_is_not_there_lists_what_is(quant: str | None, file: str | None, hint: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        offer(quant, file)
    assert caught.value.kind is NOT_FOUND
    assert hint in caught.value.hint


def test_offer_unknown_repository_is_not_found(hub: Host) -> None:
    with pytest.raises(LlmrunError, match="shows no repository Org/Model-GGUF") as caught:
        offer()
    assert caught.value.kind is NOT_FOUND
    assert len(hub.requests) == 1


def test_offer_gated_repository_says_where_to_accept(repository: Host) -> None:
    repository.faults[API].append(Fault(status=403, headers={"X-Error-Code": "GatedRepo"}))
    with pytest.raises(LlmrunError, match="gated") as caught:
        offer()
    assert "https://hf.co/Org/Model-GGUF" in caught.value.hint
    assert "HF_TOKEN" in caught.value.hint


def test_fetch_gated_file_says_where_to_accept(repository: Host, tmp_path: Path) -> None:
    chosen = offer("Q4_K_M")
    repository.faults["/Org/Model-GGUF/resolve/main/M-Q4_K_M.gguf"].append(Fault(status=403))
    with pytest.raises(LlmrunError, match="403") as caught:
        chosen.fetch(chosen.files, tmp_path, Meter(None))
    assert "https://hf.co/Org/Model-GGUF" in caught.value.hint


def test_token_goes_to_the_hub_and_to_nobody_else(
    repository: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    assert fetch("Q4_K_M", tmp_path) == [SMALL]
    carried = {seen.path: seen.headers.get("authorization") for seen in repository.requests}
    assert carried.pop(f"/cdn/{sha256(SMALL)}") is None
    assert set(carried.values()) == {"Bearer hf_secret"}


@pytest.mark.parametrize("status", [429, 503])
def test_offer_passing_failure_of_the_hub_is_tried_again(repository: Host, status: int) -> None:
    repository.faults[API].append(Fault(status=status))
    assert offer("Q8_0").files[0].size == len(LARGE)


def cache(quant: str) -> Path:
    """Download with the Hub's own client into its shared cache."""
    return Path(hf_hub_download("Org/Model-GGUF", f"M-{quant}.gguf", endpoint=hf._endpoint()))


@pytest.mark.usefixtures("repository")
def test_offer_file_in_the_shared_cache_is_used_there() -> None:
    path = cache("Q4_K_M")
    assert here(offer("Q4_K_M")) == (path,)
    assert here(offer("Q8_0")) == (None,)


def test_offer_file_that_changed_on_the_hub_is_not_taken_from_the_cache(repository: Host) -> None:
    cache("Q4_K_M")
    repository.put_repository("Org/Model-GGUF", {"M-Q4_K_M.gguf": SMALL + b"new"})
    assert here(offer("Q4_K_M")) == (None,)


@pytest.mark.parametrize("failure", ["offline", "429", "unreachable"])
def test_offer_silent_hub_leaves_the_cache_and_says_so(
    repository: Host, monkeypatch: pytest.MonkeyPatch, failure: str
) -> None:
    path = cache("Q4_K_M")
    if failure == "offline":
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    elif failure == "429":
        repository.faults[API] += [Fault(status=429)] * 9
    else:
        monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    chosen = offer()
    assert here(chosen) == (path,)
    assert chosen.files[0].sha256 == sha256(SMALL)
    assert "its cache is used: Q4_K_M" in chosen.why


def test_offer_silent_hub_and_empty_cache_is_an_error(hub: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    with pytest.raises(LlmrunError, match="HF_HUB_OFFLINE") as caught:
        offer()
    assert caught.value.kind is DOWNLOAD
    assert hub.requests == []


@pytest.mark.usefixtures("repository")
def test_server_plays_the_hub_well_enough_for_its_client() -> None:
    path = cache("Q8_0")
    assert path.read_bytes() == LARGE
    assert COMMIT in str(path)


def test_offer_refused_token_says_so(repository: Host) -> None:
    repository.faults[API].append(Fault(status=400))
    with pytest.raises(LlmrunError, match="HTTP 400") as caught:
        offer()
    assert caught.value.hint == "check HF_TOKEN"
