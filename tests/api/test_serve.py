"""The daemon's process for real: its lock, its socket, its files, its end. No model is loaded."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import ssl
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, cast

import httpx
import psutil
import pytest

from llmrun.access.gate import Gate
from llmrun.access.keyring import Keyring
from llmrun.access.usage import UsageLog
from llmrun.api import serve as serving
from llmrun.api import server as servers
from llmrun.config import Paths, Settings
from llmrun.daemon.lock import find_daemon
from llmrun.daemon.service import Service
from llmrun.errors import CONFIG, CONFLICT, USAGE, LlmrunError
from llmrun.hosts import Address
from llmrun.types import Event, GenerateRequest, Started, Text
from tests.api.scripted import MODEL, ScriptedService
from tests.real.daemons import eventually, has_ended
from tests.support.certificates import self_signed

TIMEOUT = 20


@pytest.fixture
def paths(tmp_path: Path) -> Paths:
    return Paths.find({"LLMRUN_HOME": str(tmp_path)})


@contextmanager
def daemon(tmp_path: Path, *arguments: str, **streams: Any) -> Iterator[subprocess.Popen[bytes]]:
    """`llmrun serve` in a process of its own, which is ended at the end."""
    env = {**os.environ, "LLMRUN_HOME": str(tmp_path), "LLMRUN_HOST": "127.0.0.1:0"}
    command = [sys.executable, "-m", "llmrun", "serve", *arguments]
    process = subprocess.Popen(command, env=env, stderr=subprocess.PIPE, **streams)
    try:
        yield process
    finally:
        process.kill()
        process.wait(TIMEOUT)
        for stream in (process.stdin, process.stdout, process.stderr):
            if stream:
                stream.close()


def url_of(process: subprocess.Popen[bytes], paths: Paths) -> str:
    """The daemon's address, once it serves."""
    assert process.stderr is not None
    for line in process.stderr:
        if b"listening on" in line:
            break
    else:
        raise AssertionError("the daemon ended before it listened")
    url = line.decode().split()[-1]
    assert httpx.get(f"{url}/health", timeout=TIMEOUT).json() == {"status": "ok"}
    found = find_daemon(paths)
    assert found is not None
    assert (found.pid, found.url) == (process.pid, url)
    return url


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_serve_signal_ends_it_cleanly(tmp_path: Path, paths: Paths, number: signal.Signals) -> None:
    with daemon(tmp_path, stdout=subprocess.PIPE) as process:
        url_of(process, paths)
        process.send_signal(number)
        out, err = process.communicate(timeout=TIMEOUT)
        assert process.returncode == 0
        assert out == b""
        assert b"Traceback" not in err
    assert find_daemon(paths) is None
    assert not (paths.state / "daemon.json").exists()


def test_serve_ends_when_a_client_asks(tmp_path: Path, paths: Paths) -> None:
    with daemon(tmp_path) as process:
        url = url_of(process, paths)
        response = httpx.post(f"{url}/llmrun/shutdown", json={}, timeout=TIMEOUT)
        assert response.json() == {"status": "shutting down"}
        assert process.wait(TIMEOUT) == 0
    assert find_daemon(paths) is None


def test_serve_keys_made_and_revoked_while_it_runs_count_and_their_use_survives(
    tmp_path: Path, paths: Paths
) -> None:
    ring = Keyring.of(paths)

    def status(url: str, secret: str) -> int:
        headers = {"authorization": f"Bearer {secret}"}
        return httpx.get(f"{url}/v1/models", headers=headers, timeout=TIMEOUT).status_code

    with daemon(tmp_path) as process:
        url = url_of(process, paths)
        assert status(url, "none") == 200
        secret, other = ring.create("laptop"), ring.create("phone")
        assert [status(url, each) for each in (secret, secret, other, "none")] == [200, 200, 200, 401]
        ring.revoke("phone")
        assert status(url, other) == 401
        process.send_signal(signal.SIGTERM)
        assert process.wait(TIMEOUT) == 0
    key = next(key for key in ring.entries() if key.name == "laptop")
    assert UsageLog.of(paths).used(key.id).requests == 2
    with daemon(tmp_path) as process:
        url = url_of(process, paths)
        assert status(url, secret) == 200
        page = httpx.get(f"{url}/metrics", headers={"x-api-key": secret}, timeout=TIMEOUT).text
        assert 'llmrun_key_requests_total{key="laptop"} 4.0' in page


def test_serve_ended_ends_its_spare_runner(tmp_path: Path, paths: Paths) -> None:
    with daemon(tmp_path) as process:
        url_of(process, paths)
        (spare,) = psutil.Process(process.pid).children(recursive=True)
        assert spare.cmdline()[-1] == "llmrun.runner"
        process.terminate()
        process.wait(TIMEOUT)
        assert not spare.is_running()


def test_serve_killed_leaves_nothing_in_the_way_of_the_next(tmp_path: Path, paths: Paths) -> None:
    with daemon(tmp_path) as process:
        url_of(process, paths)
        (spare,) = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.wait(TIMEOUT)
        assert eventually(lambda: has_ended(spare), TIMEOUT)
    with daemon(tmp_path) as process:
        url_of(process, paths)


def test_serve_second_daemon_on_the_same_folder_is_refused(tmp_path: Path, paths: Paths) -> None:
    with daemon(tmp_path) as process:
        url = url_of(process, paths)
        with pytest.raises(LlmrunError) as caught:
            serving.serve(Settings(host=Address("127.0.0.1", 0)), paths)
        assert caught.value.kind is CONFLICT
        assert url in str(caught.value)


def test_serve_port_taken_says_so_and_frees_the_lock(paths: Paths) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        port = other.getsockname()[1]
        with pytest.raises(LlmrunError) as caught:
            serving.serve(Settings(host=Address("127.0.0.1", port)), paths)
    assert caught.value.kind is CONFLICT
    assert str(port) in caught.value.message
    assert find_daemon(paths) is None


@pytest.mark.parametrize("host", ["203.0.113.1", "no-such-host.invalid"])
def test_serve_address_that_is_not_ours_says_so(paths: Paths, host: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        serving.serve(Settings(host=Address(host, 0)), paths, no_auth=True)
    assert caught.value.kind is CONFIG
    assert host in caught.value.message


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.2", "box.lan"])
def test_serve_beyond_loopback_without_a_key_is_refused(paths: Paths, host: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        serving.serve(Settings(host=Address(host, 0)), paths)
    assert caught.value.kind is USAGE
    assert "--no-auth" in str(caught.value)
    assert not paths.state.exists()


def test_private_says_where_and_ends_with_its_parent(tmp_path: Path, paths: Paths) -> None:
    with daemon(tmp_path, "--private", stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        assert said["pid"] == process.pid
        health = httpx.get(f"http://{said['host']}:{said['port']}/health", timeout=TIMEOUT)
        assert health.status_code == 200
        assert find_daemon(paths) is None
        process.stdin.close()
        assert process.wait(TIMEOUT) == 0
        assert process.stdout.read() == b""


class ClosableService(ScriptedService):
    """A scripted service that remembers its end."""

    closed = False

    async def close(self) -> None:
        self.closed = True


@contextmanager
def in_thread(service: ClosableService) -> Iterator[tuple[str, Callable[[], None]]]:
    """Our server for a scripted service: its URL, and what asks it to end."""
    listener = socket.create_server(("127.0.0.1", 0))
    host, port = listener.getsockname()
    ready = threading.Event()
    server = servers.Server(cast(Service, service), Settings(), Gate(None), None, None, ready.set)
    thread = threading.Thread(target=lambda: asyncio.run(server.run_on(listener)))
    thread.start()
    try:
        assert ready.wait(TIMEOUT)
        yield f"http://{host}:{port}", server.ask_to_end
    finally:
        server.ask_to_end()
        thread.join(TIMEOUT)
        assert not thread.is_alive()


def ask(url: str, stream: bool) -> httpx.Request:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], "stream": stream}
    return httpx.Request("POST", f"{url}/v1/chat/completions", json=body)


@pytest.mark.parametrize("stream", [False, True])
def test_shutdown_ends_endless_answers_after_a_while(monkeypatch: pytest.MonkeyPatch, stream: bool) -> None:
    monkeypatch.setattr(servers, "DRAIN", 0.3)
    begun = threading.Event()

    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "Once")
        begun.set()
        await asyncio.Event().wait()

    service = ClosableService(script)
    with in_thread(service) as (url, ask_to_end), httpx.Client(timeout=TIMEOUT) as http:
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(http.send(ask(url, stream))))
        asking.start()
        assert begun.wait(TIMEOUT)
        ask_to_end()
        asking.join(TIMEOUT)
    assert answers[0].status_code == (200 if stream else 503)
    assert '"code":"shutting_down"' in answers[0].text
    assert "[DONE]" not in answers[0].text
    assert service.closed


def test_shutdown_lets_answers_finish() -> None:
    begun, go_on = threading.Event(), threading.Event()

    async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
        begun.set()
        await asyncio.to_thread(go_on.wait, TIMEOUT)
        async for event in ScriptedService().script(request):
            yield event

    service = ClosableService(script)
    with in_thread(service) as (url, ask_to_end), httpx.Client(timeout=TIMEOUT) as http:
        answers: list[httpx.Response] = []
        asking = threading.Thread(target=lambda: answers.append(http.send(ask(url, stream=True))))
        asking.start()
        assert begun.wait(TIMEOUT)
        ask_to_end()
        go_on.set()
        asking.join(TIMEOUT)
    assert "wörld" in answers[0].text
    assert answers[0].text.endswith("data: [DONE]\n\n")


def test_serve_with_a_certificate_speaks_https_alone_and_commands_find_it(
    tmp_path: Path, paths: Paths
) -> None:
    cert, key = self_signed(tmp_path)
    with daemon(tmp_path, "--tls-cert", str(cert), "--tls-key", str(key)) as process:
        assert process.stderr is not None
        line = next(line for line in process.stderr if b"listening on" in line)
        url = line.decode().split()[-1]
        trusting = ssl.create_default_context(cafile=str(cert))
        assert httpx.get(f"{url}/health", verify=trusting, timeout=TIMEOUT).status_code == 200
        with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
            httpx.get(f"{url}/health", timeout=TIMEOUT)
        with pytest.raises(httpx.TransportError):
            httpx.get(f"{url.replace('https', 'http')}/health", timeout=TIMEOUT)
        found = find_daemon(paths)
        assert found is not None
        assert found.url == url

        def ps(**env: str) -> subprocess.CompletedProcess[bytes]:
            there = {**os.environ, "LLMRUN_HOME": str(tmp_path), **env}
            command = [sys.executable, "-m", "llmrun", "ps", "--json"]
            return subprocess.run(command, env=there, capture_output=True, timeout=60, check=False)

        assert ps(LLMRUN_TLS_CERT=str(cert)).stdout == b"[]\n"
        assert ps(LLMRUN_TLS_CERT=str(cert), LLMRUN_HOST=url).stdout == b"[]\n"
        httpx.post(f"{url}/llmrun/shutdown", json={}, verify=trusting, timeout=TIMEOUT)
        assert process.wait(TIMEOUT) == 0
