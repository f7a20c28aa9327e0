"""`pull` in this process and in one of its own, against a real server."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.cli.download import parse_rate
from llmrun.errors import LlmrunError
from tests.cli.conftest import Shell
from tests.store.models import gguf_bytes
from tests.store.server import Host, serving


@pytest.fixture
def host() -> Iterator[Host]:
    with serving() as running:
        yield running


@pytest.fixture
def url(host: Host, tmp_path: Path) -> str:
    return host.put("/M-Q4_0.gguf", gguf_bytes(tmp_path, size=3 << 20))


def test_pull_without_a_terminal_writes_plain_lines_to_stderr_and_nothing_to_stdout(
    shell: Shell, url: str
) -> None:
    done = shell.run("pull", url)
    assert (done.code, done.out) == (0, "")
    lines = done.err.splitlines()
    assert lines[-1] == f"m:Q4_0: 3.1 MB, F32, from {url}"
    assert any(line.startswith("downloading M-Q4_0.gguf: ") for line in lines)
    assert any(line.startswith("checking M-Q4_0.gguf: 3.1 MB of 3.1 MB (100 %)") for line in lines)
    assert len(lines) < 40
    assert "\r" not in done.err
    assert "\x1b" not in done.err


def test_pull_json_prints_what_came(shell: Shell, url: str) -> None:
    assert json.loads(shell.run("pull", url, "--json").out)["name"] == "m:Q4_0"


def test_pull_dry_run_tells_and_fetches_nothing(shell: Shell, home: Path, host: Host, url: str) -> None:
    told = shell.run("pull", url, "--dry-run")
    assert told.code == 0
    fields = dict(line.split(None, 1) for line in told.out.splitlines())
    assert fields["source"] == url
    assert fields["weights"].startswith("M-Q4_0.gguf")
    assert fields["to"] == "fetch  3.1 MB"
    assert fields["disk"].endswith("free")
    assert fields["memory"].startswith("fits: ")
    assert "512 tokens" in fields["memory"]
    assert not home.exists()
    record = json.loads(shell.run("pull", url, "--dry-run", "--json").out)
    assert (record["source"], record["to_fetch"], record["fits_disk"]) == (
        url,
        len(host.files["/M-Q4_0.gguf"]),
        True,
    )
    assert record["memory"]["fits"]
    assert host.sent("/M-Q4_0.gguf") < 1 << 20


def test_pull_dry_run_of_what_shows_nothing_beforehand_says_so(shell: Shell) -> None:
    told = shell.run("pull", "pypi://tiny-model", "--dry-run")
    assert told.code == 0
    assert "to fetch  not known" in told.out
    assert "memory    not known: " in told.out


def test_pull_interrupted_says_nothing_it_should_not_and_goes_on_later(
    shell: Shell, host: Host, url: str
) -> None:
    child = shell.spawn("pull", url, "--limit-rate", "1M")
    assert child.stderr
    for line in child.stderr:
        if b"(30 %)" in line or b"(40 %)" in line:
            break
    child.send_signal(signal.SIGINT)
    _, rest = child.communicate(timeout=20)
    assert child.returncode == 130
    assert b"Traceback" not in rest
    assert b"what came is kept" in rest
    assert shell.run("list", "--json").out.strip() == "[]"
    before = host.sent("/M-Q4_0.gguf")
    assert shell.run("pull", url).code == 0
    assert host.sent("/M-Q4_0.gguf") - before <= len(host.files["/M-Q4_0.gguf"]) * 0.8


def test_pull_rate_that_is_none_is_wrong_usage(shell: Shell, url: str) -> None:
    done = shell.run("pull", url, "--limit-rate", "fast")
    assert done.code == 2
    assert "'fast' is not a rate" in done.err


@pytest.mark.parametrize(
    ("text", "rate"),
    [
        ("80000", 80000),
        ("500k", 512000),
        ("5M", 5 << 20),
        ("1.5G", 3 << 29),
        ("2MB/s", 2 << 20),
        (".5k", 512),
    ],
)
def test_parse_rate_reads_what_people_write(text: str, rate: int) -> None:
    assert parse_rate(text) == rate


@pytest.mark.parametrize("text", ["", "0", "k", "-1", "1T", "1e9", "0.1"])
def test_parse_rate_of_anything_else_is_refused(text: str) -> None:
    with pytest.raises(LlmrunError):
        parse_rate(text)
