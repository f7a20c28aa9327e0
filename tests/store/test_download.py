from __future__ import annotations

import random
import shutil
import subprocess
import sys
import threading
from pathlib import Path
from typing import NamedTuple

import pytest

from llmrun.errors import BAD_FILE, DIGEST, DISK, DOWNLOAD, NOT_FOUND, Kind, LlmrunError
from llmrun.store import disk, fetching
from llmrun.store.disk import BLOCK
from llmrun.store.download import download
from llmrun.store.fetching import CONNECTIONS, PATIENCE
from llmrun.store.part import Part
from llmrun.store.progress import Meter, PullProgress
from llmrun.store.transfer import block_size
from llmrun.store.wanted import RangeSum, Wanted
from tests.store.conftest import sha256
from tests.store.server import Fault, Host

BODY = b"GGUF" + bytes(range(256)) * 12_000  # three megabytes
PATH = "/x.gguf"
SMALL_BLOCK = block_size(len(BODY))


class Result(NamedTuple):
    target: Path
    digest: str
    progress: list[PullProgress]


def fetch(host: Host, folder: Path, *, pinned: bool = True, size: int | None = len(BODY)) -> Result:
    folder.mkdir(parents=True, exist_ok=True)
    seen: list[PullProgress] = []
    wanted = Wanted(host.url(PATH), size=size, sha256=sha256(BODY) if pinned else None)
    target = folder / "x.gguf"
    return Result(target, download(wanted, target, Meter(seen.append)), seen)


def failure(host: Host, folder: Path, **options: object) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        fetch(host, folder, **options)  # type: ignore[arg-type]
    assert not (folder / "x.gguf").exists()
    return caught.value


def assert_whole(result: Result) -> None:
    assert result.target.read_bytes() == BODY
    assert result.digest == sha256(BODY)
    assert [path.name for path in result.target.parent.iterdir()] == ["x.gguf"]
    done = [p.completed for p in result.progress if p.step == "download"]
    assert done == sorted(done)
    assert done[-1] == len(BODY)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "o n e 模型\u3000🦙"


def test_download_plain_file_arrives_whole(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) == len(BODY)


def test_download_without_promises_arrives_whole(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    assert_whole(fetch(host, folder, pinned=False, size=None))


@pytest.mark.parametrize("pinned", [True, False])
def test_download_reset_in_the_middle_resumes_where_it_stopped(
    host: Host, folder: Path, pinned: bool
) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(reset=1_000_000), Fault(reset=500_000)]
    assert_whole(fetch(host, folder, pinned=pinned))
    assert host.sent(PATH) == len(BODY)
    assert [seen.status for seen in host.gets(PATH)] == [206, 206, 206]


def test_download_many_resets_are_survived_while_bytes_come(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(reset=200_000)] * (PATIENCE * 2)
    assert_whole(fetch(host, folder))


def test_download_next_call_goes_on_from_what_was_kept(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(reset=1_000_000), *[Fault(status=503)] * PATIENCE]
    error = failure(host, folder)
    assert "1.0 MB are kept" in error.hint
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) - 2 * PATIENCE == len(BODY)  # each 503 had a body of two bytes


def test_download_file_changed_meanwhile_starts_over(host: Host, folder: Path) -> None:
    host.put(PATH, b"GGUF" + b"old" * 1_000_000)
    host.faults[PATH] += [Fault(reset=1_000_000), *[Fault(status=503)] * PATIENCE]
    failure(host, folder, pinned=False, size=None)
    host.put(PATH, BODY)
    assert_whole(fetch(host, folder, pinned=False, size=None))


def test_download_without_validator_or_digest_never_resumes(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    del host.etags[PATH]
    host.faults[PATH] += [Fault(), Fault(reset=1_000_000)]
    assert_whole(fetch(host, folder, pinned=False))
    assert [seen.status for seen in host.gets(PATH)] == [206, 200, 200]


def test_download_server_that_ignores_ranges_starts_over(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(reset=1_000_000), Fault(whole=True)]
    assert_whole(fetch(host, folder))


def test_download_refused_range_starts_over(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(reset=1_000_000), Fault(status=416)]
    assert_whole(fetch(host, folder))


def test_download_part_without_a_journal_starts_over(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    folder.mkdir()
    (folder / "x.gguf.part").write_bytes(BODY + b"more")
    assert_whole(fetch(host, folder))


def interrupted(host: Host, folder: Path, at: int) -> Path:
    """The part that a download leaves which its callback ends once `at` bytes arrived."""
    folder.mkdir()

    def stop(progress: PullProgress) -> None:
        if progress.step == "download" and progress.completed >= at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(Wanted(host.url(PATH), len(BODY), sha256(BODY)), folder / "x.gguf", Meter(stop))
    host.requests.clear()
    return folder / "x.gguf.part"


def test_download_complete_part_is_verified_without_asking_again(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    interrupted(host, folder, len(BODY))
    assert_whole(fetch(host, folder))
    assert host.requests == []


def test_download_block_that_the_disk_spoilt_is_the_only_one_fetched_again(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    part = interrupted(host, folder, len(BODY))
    spoil(part, 1_500_000)
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) == SMALL_BLOCK


def test_download_journal_that_a_crash_cut_costs_only_what_it_lost(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    interrupted(host, folder, len(BODY))
    log = folder / "x.gguf.part.log"
    log.write_bytes(log.read_bytes()[:-10] + bytes(10))
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) == len(BODY) % SMALL_BLOCK


def spoil(path: Path, at: int) -> None:
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)


@pytest.fixture
def small_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few megabytes are fetched as large ones are."""
    monkeypatch.setattr(fetching, "RUN", 300_000)


@pytest.mark.usefixtures("small_runs")
def test_download_ranges_arrive_over_several_connections_and_no_byte_twice(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    together = threading.Barrier(CONNECTIONS)
    host.faults[PATH] += [Fault(), *[Fault(before=lambda: together.wait(10))] * CONNECTIONS]
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) == len(BODY)
    assert len(host.gets(PATH)) == -(-len(BODY) // 300_000)


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("pinned", [True, False])
def test_download_failures_in_the_middle_of_ranges_cost_nothing_twice(
    host: Host, folder: Path, pinned: bool
) -> None:
    host.put(PATH, BODY)
    faults = [
        Fault(reset=100_000),
        Fault(status=500),
        Fault(reset=0),
        Fault(reset=299_999),
        Fault(status=429),
    ]
    host.faults[PATH] += faults * 2
    assert_whole(fetch(host, folder, pinned=pinned))
    assert host.sent(PATH) - 8 == len(BODY)  # each status had a body of two bytes


@pytest.mark.usefixtures("small_runs")
def test_download_busy_server_is_left_to_one_connection(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(), *[Fault(status=429)] * (CONNECTIONS + 2)]
    assert_whole(fetch(host, folder))


@pytest.mark.usefixtures("small_runs")
def test_download_redirect_is_asked_for_once_and_again_when_it_expires(host: Host, folder: Path) -> None:
    host.put("/real.gguf", BODY)
    host.redirects[PATH] = {"Location": host.url("/real.gguf")}
    host.faults["/real.gguf"] += [*[Fault()] * 5, Fault(status=403)]
    assert_whole(fetch(host, folder))
    assert 2 <= len(host.gets(PATH)) <= 1 + CONNECTIONS


@pytest.mark.usefixtures("small_runs")
@pytest.mark.parametrize("answers", [1, 2, 5])
def test_download_file_changed_between_ranges_starts_over(host: Host, folder: Path, answers: int) -> None:
    host.put(PATH, b"GGUF" + b"old" * 1_000_000)
    host.faults[PATH] += [*[Fault()] * answers, Fault(before=lambda: host.put(PATH, BODY))]
    assert_whole(fetch(host, folder, pinned=False, size=None))


def test_download_source_that_knows_sums_of_ranges_costs_one_range(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH].append(Fault(body=flipped(2_500_000)))
    size = 500_000
    sums = [
        RangeSum(at, min(at + size, len(BODY)), sha256(BODY[at : at + size]))
        for at in range(0, len(BODY), size)
    ]
    folder.mkdir()
    wanted = Wanted(host.url(PATH), len(BODY), sha256(BODY), sums=lambda *_: tuple(sums))
    download(wanted, folder / "x.gguf", Meter(None))
    assert (folder / "x.gguf").read_bytes() == BODY
    assert host.sent(PATH) - len(BODY) <= 500_000 + 2 * SMALL_BLOCK  # the blocks that the range touches


def flipped(*positions: int) -> bytes:
    data = bytearray(BODY)
    for at in positions:
        data[at] ^= 1
    return bytes(data)


def test_download_wrong_bytes_once_are_fetched_again(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH].append(Fault(body=flipped(1_500_000)))
    result = fetch(host, folder)
    assert_whole(result)
    assert any("damaged" in p.text for p in result.progress if p.step == "note")


@pytest.mark.usefixtures("small_runs")
def test_download_wrong_bytes_in_two_ranges_are_mended_without_a_third_copy(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    bad = Fault(body=flipped(100_000, 200_000, 1_000_000))
    host.faults[PATH] += [bad] * 4
    assert_whole(fetch(host, folder))
    # Each time a difference is found, what is under way on the other connections is dropped.
    assert host.sent(PATH) < 2 * len(BODY) + 3 * CONNECTIONS * 300_000


def test_download_wrong_bytes_always_end_with_both_digests(host: Host, folder: Path) -> None:
    wrong = BODY[:-1] + b"!"
    host.put(PATH, wrong)
    error = failure(host, folder)
    assert error.kind is DIGEST
    assert sha256(BODY) in error.message
    assert sha256(wrong) in error.message
    assert list(folder.iterdir()) == []


def test_download_lying_length_is_noticed_before_any_byte_is_kept(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH].append(Fault(length=len(BODY) + 1, reset=len(BODY)))
    assert_whole(fetch(host, folder))


def test_download_other_size_than_promised_is_an_error(host: Host, folder: Path) -> None:
    host.put(PATH, BODY[:-100])
    error = failure(host, folder)
    assert error.kind is DOWNLOAD
    assert str(len(BODY)) in error.message
    assert str(len(BODY) - 100) in error.message
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize("size", [len(BODY), None])
def test_download_empty_body_is_tried_again_and_nothing_kept(
    host: Host, folder: Path, size: int | None
) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(body=b"")] * 2
    assert_whole(fetch(host, folder, size=size))


def test_download_always_empty_body_is_an_error_that_says_so(host: Host, folder: Path) -> None:
    host.put(PATH, b"")
    error = failure(host, folder, pinned=False, size=None)
    assert "empty file" in error.message
    assert len(host.gets(PATH)) == PATIENCE


def test_download_redirect_is_followed(host: Host, folder: Path) -> None:
    host.put("/real.gguf", BODY)
    host.faults[PATH] += [Fault(status=302, headers={"Location": host.url("/real.gguf")})]
    assert_whole(fetch(host, folder))


def test_download_endless_redirects_are_an_error(host: Host, folder: Path) -> None:
    host.redirects[PATH] = {"Location": host.url(PATH)}
    assert "redirect" in failure(host, folder).message.lower()


def test_download_redirect_to_a_file_of_this_machine_is_refused(host: Host, folder: Path) -> None:
    host.redirects[PATH] = {"Location": "file:///etc/passwd"}
    assert failure(host, folder).kind is DOWNLOAD


@pytest.mark.parametrize("status", [408, 429, 500, 502, 503, 504])
def test_download_passing_failure_is_tried_again(host: Host, folder: Path, status: int) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(status=status, headers={"Retry-After": "0"})] * 2
    assert_whole(fetch(host, folder))


@pytest.mark.parametrize(
    ("fault", "kind", "message", "hint"),
    [
        (Fault(status=404), NOT_FOUND, "does not exist (HTTP 404", "name"),
        (Fault(status=401), DOWNLOAD, "may not be fetched (HTTP 401", "login"),
        (Fault(status=403), DOWNLOAD, "may not be fetched (HTTP 403", "login"),
        (Fault(status=429, headers={"Retry-After": "3600"}), DOWNLOAD, "HTTP 429", "3600 seconds"),
        (Fault(status=418), DOWNLOAD, "HTTP 418", "link"),
        (Fault(headers={"Content-Encoding": "gzip"}), DOWNLOAD, "compressed", ""),
        (Fault(body=b"<html>please log in</html>"), BAD_FILE, "a web page", "link"),
        (Fault(body=b"PK\x03\x04zip"), BAD_FILE, "start with b'PK", "link"),
    ],
)
def test_download_final_failure_says_what_and_what_to_do(
    host: Host, folder: Path, fault: Fault, kind: Kind, message: str, hint: str
) -> None:
    host.put(PATH, BODY)
    host.faults[PATH].append(fault)
    error = failure(host, folder, pinned=False, size=None)
    assert error.kind is kind
    assert message in error.message
    assert hint in error.hint
    assert len(host.gets(PATH)) == 1


def test_download_nobody_listening_is_an_error_in_bounded_time(host: Host, folder: Path) -> None:
    host.address = "http://127.0.0.1:1"
    error = failure(host, folder)
    assert error.kind is DOWNLOAD
    assert "127.0.0.1:1/x.gguf" in error.message


def test_download_error_leaves_the_query_out(host: Host, folder: Path) -> None:
    folder.mkdir()
    with pytest.raises(LlmrunError) as caught:
        download(Wanted(f"{host.url(PATH)}?token=secret"), folder / "x.gguf", Meter(None))
    assert "secret" not in str(caught.value)


def test_download_too_little_space_is_said_before_the_body_is_read(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.put(PATH, BODY)
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda _: usage._replace(free=1_000_000))
    error = failure(host, folder)
    assert error.kind is DISK
    assert "3.1 MB are needed" in error.message


def test_download_callback_that_raises_ends_it_and_keeps_the_bytes(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    folder.mkdir()

    def stop(progress: PullProgress) -> None:
        if progress.completed >= 1 << 20:
            raise KeyboardInterrupt

    wanted = Wanted(host.url(PATH), size=len(BODY), sha256=sha256(BODY))
    with pytest.raises(KeyboardInterrupt):
        download(wanted, folder / "x.gguf", Meter(stop))
    kept = Part(folder / "x.gguf").size
    assert kept >= 1 << 20
    host.requests.clear()
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) == len(BODY) - kept


CHILD = """
import os, signal, sys
from pathlib import Path
from llmrun.store.download import download
from llmrun.store.wanted import Wanted
from llmrun.store.progress import Meter

def die(progress):
    if progress.completed >= 1 << 20:
        os.kill(os.getpid(), signal.SIGKILL)

url, target, size, sha256 = sys.argv[1:]
download(Wanted(url, int(size), sha256), Path(target), Meter(die))
"""


def test_download_killed_process_costs_only_what_is_missing(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    folder.mkdir()
    arguments = [host.url(PATH), str(folder / "x.gguf"), str(len(BODY)), sha256(BODY)]
    child = subprocess.run([sys.executable, "-c", CHILD, *arguments], check=False)
    assert child.returncode == -9
    kept = Part(folder / "x.gguf").size
    assert kept >= 1 << 20
    host.requests.clear()
    assert_whole(fetch(host, folder))
    assert host.sent(PATH) == len(BODY) - kept


KILLED_CHILD = """
import os, signal, sys
from pathlib import Path
from llmrun.store.download import download
from llmrun.store.progress import Meter
from llmrun.store.wanted import Wanted

def die(progress):
    if progress.completed >= 0.6 * int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)

url, target, size, sha256 = sys.argv[1:]
download(Wanted(url, int(size), sha256), Path(target), Meter(die, 20 << 20))
"""


def test_download_killed_over_several_connections_costs_less_than_a_block_each(
    host: Host, folder: Path
) -> None:
    body = b"GGUF" + random.Random(0).randbytes(24 << 20)
    host.put(PATH, body)
    folder.mkdir()
    arguments = [host.url(PATH), str(folder / "x.gguf"), str(len(body)), sha256(body)]
    child = subprocess.run([sys.executable, "-c", KILLED_CHILD, *arguments], check=False)
    assert child.returncode == -9
    missing = len(body) - int(0.6 * len(body))
    host.requests.clear()
    download(Wanted(host.url(PATH), len(body), sha256(body)), folder / "x.gguf", Meter(None))
    assert (folder / "x.gguf").read_bytes() == body
    assert host.sent(PATH) <= missing + BLOCK


def test_download_that_waits_says_why_and_can_be_ended(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH].append(Fault(status=429, headers={"Retry-After": "20"}))
    folder.mkdir()
    notes: list[str] = []

    def stop(progress: PullProgress) -> None:
        if progress.step == "note":
            notes.append(progress.text)
        elif notes:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        download(Wanted(host.url(PATH)), folder / "x.gguf", Meter(stop))
    assert notes == ["HTTP 429 Too Many Requests; trying again in 20 s"]


def test_download_body_without_an_end_stops_at_the_promised_size(host: Host, folder: Path) -> None:
    host.put(PATH, BODY)
    host.faults[PATH] += [Fault(endless=True)] * (PATIENCE + 1)
    error = failure(host, folder)
    assert "more than it announced" in error.message
    assert list(folder.iterdir()) == []


def test_download_body_without_an_end_or_a_promise_stops_before_the_disk_is_full(
    host: Host, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.put(PATH, BODY)
    host.faults[PATH].append(Fault(endless=True))
    full = iter([10**9] * 10)
    monkeypatch.setattr(disk, "free_space", lambda _: next(full, 0))
    error = failure(host, folder, pinned=False, size=None)
    assert error.kind is DISK
    assert host.sent(PATH) < 100 << 20
