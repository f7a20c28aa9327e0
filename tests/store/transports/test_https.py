from __future__ import annotations

from pathlib import Path

from llmrun.store.progress import Meter
from llmrun.store.reference import UrlRef
from llmrun.store.transports import Fetched, RemoteFile, https
from llmrun.store.wanted import Wanted
from tests.store.conftest import sha256
from tests.store.server import Host

BODY = b"GGUF" + b"x" * 1000


def test_offer_name_comes_from_the_url() -> None:
    chosen = https.offer(UrlRef("https://example.org/a/Some%20Model-Q4_0.gguf?token=1"))
    assert [file.name for file in chosen.files] == ["Some Model-Q4_0.gguf"]
    assert chosen.files[0].url.endswith("Some%20Model-Q4_0.gguf?token=1")
    assert (chosen.name, chosen.vendor) == ("Some Model:Q4_0", "example.org")
    assert "token" not in chosen.source


def test_offer_escaped_slashes_and_control_characters_stay_one_name() -> None:
    chosen = https.offer(UrlRef("https://example.org/..%2F..%2Fevil%00%5Cx.gguf"))
    assert chosen.files[0].name == ".._.._evil__x.gguf"


def test_fetch_all_shards_of_the_one_named(host: Host, tmp_path: Path) -> None:
    for number in (1, 2):
        host.put(f"/m/X-Q8_0-0000{number}-of-00002.gguf", BODY + bytes([number]))
    chosen = https.offer(UrlRef(host.url("/m/X-Q8_0-00002-of-00002.gguf")))
    assert chosen.name == "X:Q8_0"
    fetched = chosen.fetch(chosen.files, tmp_path, Meter(None))
    assert [file.path.read_bytes() for file in fetched] == [BODY + b"\1", BODY + b"\2"]


def test_fetch_file_finished_before_is_not_fetched_again(host: Host, tmp_path: Path) -> None:
    host.put("/x.gguf", BODY)
    chosen = https.offer(UrlRef(host.url("/x.gguf")))
    first = chosen.fetch(chosen.files, tmp_path, Meter(None))
    assert chosen.fetch(chosen.files, tmp_path, Meter(None)) == first
    assert len(host.gets("/x.gguf")) == 1


def test_fetch_shard_of_an_older_pull_with_another_digest_is_fetched_anew(host: Host, tmp_path: Path) -> None:
    host.put("/x.gguf", BODY)
    (tmp_path / "x.gguf").write_bytes(BODY + b"old")
    file = RemoteFile("x.gguf", len(BODY), sha256(BODY), host.url("/x.gguf"))
    assert https.fetch_all((file,), tmp_path, Meter(None), Wanted("")) == (
        Fetched(tmp_path / "x.gguf", sha256(BODY)),
    )
