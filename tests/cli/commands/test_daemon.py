"""`serve`, `ps`, `stop`, `logs`."""

from __future__ import annotations

import json
import signal
import subprocess
from pathlib import Path

import pytest

from llmrun.cli.commands.logs import last_lines
from llmrun.client.client import Client
from llmrun.config import Paths
from llmrun.daemon.lock import DaemonAddress, DaemonLock, find_daemon
from llmrun.daemon.pool import LoadedModel
from tests.cli.conftest import TIMEOUT, Shell
from tests.support.frames import model_info, stats

INFO = model_info(ctx=512, size=7_000_000, kv_bytes=3_000_000)
STATS = stats(
    running=1, waiting=2, kv_used=30, kv_total=512, decode_tps=10.4, itl_p50_ms=96.2, prompt_tokens=80,
    cached_tokens=20, drafted=7,
)  # fmt: skip


@pytest.fixture
def loaded(served: Shell) -> Shell:
    """A daemon with two models, one of them loading."""
    served.daemon.running = [
        LoadedModel("tiny:1m", "ready", 1.0, INFO, STATS, 12, 1.0, None, 1),
        LoadedModel("big:7b", "loading", 0.25, None, None, 13, 1.0, None, 0),
    ]
    return served


def test_ps_shows_what_is_held_and_done(loaded: Shell) -> None:
    lines = loaded.run("ps").out.splitlines()
    assert " ".join(lines[0].split()) == (
        "NAME KIND STATE SIZE DEVICE CONTEXT RUNNING WAITING TOKENS/S ITL CACHED EXPIRES"
    )
    assert lines[1].split() == [
        "tiny:1m",
        "chat",
        "ready",
        "10.0",
        "MB",
        "CPU",
        "30/512",
        "1",
        "2",
        "10",
        "96",
        "ms",
        "25%",
        "in",
        "use",
    ]
    assert lines[2].split() == ["big:7b", "-", "loading", "25%", *"-" * 9]


def test_ps_json_and_quiet(loaded: Shell) -> None:
    first, second = json.loads(loaded.run("ps", "--json").out)
    assert (first["name"], first["stats"]["waiting"], first["stats"]["drafted"]) == ("tiny:1m", 2, 7)
    assert second["info"] is None
    assert loaded.run("ps", "--quiet").out == "tiny:1m\nbig:7b\n"


def test_ps_watch_repeats_until_interrupted(loaded: Shell) -> None:
    with loaded.spawn("ps", "--watch", "--json") as process:
        assert process.stdout is not None
        assert [json.loads(process.stdout.readline())[0]["name"] for _ in range(2)] == ["tiny:1m"] * 2
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert process.stderr is not None
        assert process.stderr.read() == b""


def test_stop_one_all_and_one_that_is_not_loaded(loaded: Shell) -> None:
    assert loaded.run("stop", "tiny:1m").err == "tiny:1m is unloaded\n"
    assert loaded.run("stop").err == "tiny:1m is unloaded\nbig:7b is unloaded\n"
    done = loaded.run("stop", "other")
    assert (done.code, done.err) == (0, "not loaded: other\n")


def test_rm_unloads_what_it_removes(loaded: Shell) -> None:
    assert loaded.run("cp", "tiny:1m", "other").code == 0
    assert loaded.run("rm", "other", "tiny:1m").code == 0
    assert loaded.daemon.stopped == ["tiny:1m"]


def test_stop_without_a_daemon_is_done_already(shell: Shell) -> None:
    for args in (["stop"], ["stop", "x"], ["stop", "--daemon"]):
        done = shell.run(*args)
        assert done.code == 0
        assert "no daemon is running" in done.err


def test_stop_daemon_with_a_model_is_wrong_usage(shell: Shell) -> None:
    assert shell.run("stop", "x", "--daemon").code == 2


def test_stop_daemon_ends_the_background_daemon(shell: Shell, paths: Paths) -> None:
    assert shell.finish("ps", "--json").out == "[]\n"
    assert find_daemon(paths) is not None
    assert shell.run("stop", "--daemon").err == "the daemon has ended\n"
    assert find_daemon(paths) is None
    logged = shell.run("logs").out
    assert "listening on" in logged
    assert shell.run("logs", "-n", "1").out == logged.splitlines(keepends=True)[-1]


def test_stop_daemon_of_ones_own_needs_no_key_and_unloading_does(shell: Shell, paths: Paths) -> None:
    assert shell.finish("ps", "--json").out == "[]\n"
    assert shell.run("keys", "create", "me").code == 0
    refused = shell.run("stop")
    assert (refused.code, "LLMRUN_API_KEY" in refused.err) == (1, True)
    assert shell.run("stop", "--daemon").err == "the daemon has ended\n"
    assert find_daemon(paths) is None


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["--host", "0.0.0.0"], "--no-auth"),
        (["--parallel", "many"], "--parallel is 'many'"),
        (["--ctx", "0"], "--ctx is '0'"),
        (["--host", "a b"], "--host is 'a b'"),
        (["--port", "70000"], "65535"),
        (["--log-format", "xml"], "json"),
    ],
)
def test_serve_wrong_setting_is_refused_in_one_line(shell: Shell, args: list[str], says: str) -> None:
    done = shell.finish("serve", *args)
    assert (done.code, done.out) == (2, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_serve_flags_beat_the_environment_and_logs_can_be_json(shell: Shell) -> None:
    shell.env["LLMRUN_HOST"] = "host.invalid:1"
    args = ("serve", "--host", "127.0.0.1", "--port", "0", "--log-format", "json")
    with shell.spawn(*args, stdin=subprocess.DEVNULL) as process:
        assert process.stderr is not None
        line = json.loads(process.stderr.readline())
        port = int(line["message"].removeprefix("listening on http://127.0.0.1:"))
        with Client("127.0.0.1", port) as client:
            assert client.is_healthy(TIMEOUT)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 0


def test_logs_without_a_log_says_where_it_would_be(shell: Shell, home: Path) -> None:
    done = shell.run("logs")
    assert (done.code, done.out) == (0, "")
    assert str(home) in done.err


def test_logs_follow_shows_what_is_added_also_after_it_began_anew(shell: Shell, home: Path) -> None:
    log = home / "logs" / "daemon.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\ntwo\n")
    with shell.spawn("logs", "-n", "1", "-f") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"two\n"
        with log.open("a") as file:
            file.write("drei ü\n")
        assert process.stdout.readline() == "drei ü\n".encode()
        log.write_text("new\n")
        assert process.stdout.readline() == b"new\n"
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130


def test_last_lines_no_line_wanted_is_none(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_text("one\ntwo\n")
    assert last_lines(log, 0) == ("", 8)
    assert last_lines(log, 5) == ("one\ntwo\n", 8)
    assert last_lines(tmp_path / "none", 5) == ("", 0)


def test_stop_daemon_that_listens_elsewhere_says_how_it_is_ended(shell: Shell, paths: Paths) -> None:
    shell.env["LLMRUN_HOST"] = "127.0.0.1:1"
    lock = DaemonLock(paths)
    lock.acquire()
    try:
        lock.publish(DaemonAddress(pid=1, host="127.0.0.1", port=4711, version="x", started=0.0))
        assert shell.run("stop", "--daemon").err == (
            "no daemon is running at http://127.0.0.1:1, but one is at http://127.0.0.1:4711:"
            " LLMRUN_HOST=127.0.0.1:4711 llmrun stop --daemon\n"
        )
    finally:
        lock.release()
