from __future__ import annotations

import socket
from pathlib import Path

from llmrun.cli.doctor.finding import Finding
from llmrun.cli.doctor.service import check_service, silent
from llmrun.client.connection import Connector
from llmrun.config import Paths, load_settings
from llmrun.daemon.lock import DaemonAddress
from tests.api.scripted import ScriptedService
from tests.api.server import serving
from tests.client.test_connection import lock_at


def where(home: Path, **env: str) -> Connector:
    paths = Paths.find({"LLMRUN_HOME": str(home)})
    return Connector(paths, load_settings(paths, env), print, print, env)


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_daemon_that_answers_is_ok(tmp_path: Path) -> None:
    with serving(ScriptedService()) as url:
        finding = only(check_service(where(tmp_path, LLMRUN_HOST=url)))
        assert (finding.level, finding.text) == ("ok", f"answers at {url}")


def test_daemon_of_another_version_is_a_warning(tmp_path: Path) -> None:
    with serving(ScriptedService()) as url:
        host, _, port = url.removeprefix("http://").partition(":")
        lock = lock_at(tmp_path, (host, int(port)), version="0.0.1")
        finding = only(check_service(where(tmp_path)))
        lock.release()
    assert (finding.level, finding.mend.partition(";")[0]) == ("warning", "llmrun stop --daemon")


def test_no_daemon_yet_is_ok(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    assert only(check_service(where(tmp_path, LLMRUN_HOST=f"127.0.0.1:{port}"))).level == "ok"


def test_port_taken_by_another_program_is_broken(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        finding = only(silent(where(tmp_path, LLMRUN_HOST=f"127.0.0.1:{port}"), None))
    assert finding.level == "broken"
    assert f"LLMRUN_HOST=127.0.0.1:{port + 1}" in finding.mend


def test_daemon_that_hangs_is_broken_and_its_pid_named(tmp_path: Path) -> None:
    locked = DaemonAddress(pid=4321, host="127.0.0.1", port=9, version="1", started=0.0)
    assert only(silent(where(tmp_path), locked)).mend == "kill 4321"


def test_daemon_elsewhere_that_is_silent_is_broken(tmp_path: Path) -> None:
    finding = only(silent(where(tmp_path, LLMRUN_HOST="host.invalid:9"), None))
    assert finding.level == "broken"
    assert "LLMRUN_HOST" in finding.mend
