"""A real HTTP server that plays a file host, both hubs and an Ollama registry, and misbehaves as told.

Files are served with ranges, `If-Range` and ETags. `faults[path]` holds what goes wrong with the next
requests of that path, one each; after that it is served well. `requests` records what was asked and how many
body bytes left.
"""

from __future__ import annotations

import hashlib
import json
import re
import ssl
import sys
import threading
from collections import defaultdict, deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

COMMIT = "c0ffee" + "0" * 34


@dataclass
class Fault:
    """status: answer with that code and `headers`; reset: break the connection after so many body bytes;
    body: send these bytes instead; length: claim this length; whole: ignore the range asked for;
    before: called first (to wait for another party); endless: no length, and the body over and over."""

    status: int | None = None
    headers: dict[str, str] = field(default_factory=dict)
    reset: int | None = None
    body: bytes | None = None
    length: int | None = None
    whole: bool = False
    before: Callable[[], object] | None = None
    endless: bool = False


@dataclass
class Seen:
    method: str
    path: str
    headers: dict[str, str]
    status: int = 0
    sent: int = 0


class Host:
    def __init__(self, address: str) -> None:
        self.address = address
        self.files: dict[str, bytes] = {}
        self.etags: dict[str, str] = {}
        self.redirects: dict[str, dict[str, str]] = {}
        self.faults: dict[str, deque[Fault]] = defaultdict(deque)
        self.requests: list[Seen] = []

    def url(self, path: str) -> str:
        return self.address + path

    def put(self, path: str, body: bytes) -> str:
        """Serve `body` at `path`; its URL."""
        self.files[path] = body
        self.etags[path] = f'"{hashlib.md5(body).hexdigest()}"'
        return self.url(path)

    def put_repository(self, repo: str, files: dict[str, bytes]) -> None:
        """Play a Hub repository: its listing, and its files behind the Hub's redirect to another path."""
        siblings = []
        for name, body in files.items():
            sha256 = hashlib.sha256(body).hexdigest()
            self.put(f"/cdn/{sha256}", body)
            lfs = {"sha256": sha256, "size": len(body), "pointerSize": 134}
            siblings.append({"rfilename": name, "size": len(body), "blobId": sha256[:40], "lfs": lfs})
            headers = {
                # Another name of this machine, as a CDN is another host than the Hub.
                "Location": self.url(f"/cdn/{sha256}").replace("127.0.0.1", "localhost"),
                "X-Repo-Commit": COMMIT,
                "X-Linked-Etag": f'"{sha256}"',
                "X-Linked-Size": str(len(body)),
            }
            self.redirects[f"/{repo}/resolve/main/{name}"] = headers
        listing = {"id": repo, "sha": COMMIT, "siblings": siblings}
        self.files[f"/api/models/{repo}"] = json.dumps(listing).encode()

    def put_modelscope(self, repo: str, files: dict[str, bytes]) -> None:
        """Play a ModelScope repository: its listing, and its files behind the redirect to another host."""
        entries = [{"Path": "docs", "Name": "docs", "Type": "tree", "Size": 0, "Sha256": ""}]
        for name, body in files.items():
            sha256 = hashlib.sha256(body).hexdigest()
            self.put(f"/oss/{sha256}", body)
            entries.append(
                {
                    "Path": name,
                    "Name": name.rpartition("/")[2],
                    "Type": "blob",
                    "Size": len(body),
                    "Sha256": sha256,
                }
            )
            location = self.url(f"/oss/{sha256}").replace("127.0.0.1", "localhost")
            self.redirects[f"/models/{repo}/resolve/master/{name}"] = {"Location": location}
        listing = {"Code": 200, "Data": {"Files": entries}, "Message": "success", "Success": True}
        self.files[f"/api/v1/models/{repo}/repo/files"] = json.dumps(listing).encode()

    def put_ollama(self, name: str, tag: str, layers: dict[str, bytes], *, sums: int = 0) -> None:
        """Play an Ollama registry: `name` is OWNER/MODEL, `layers` by their kind; with `sums`, it knows the
        sums of parts of that many bytes."""
        entries = []
        for kind, body in layers.items():
            sha256 = hashlib.sha256(body).hexdigest()
            blob = f"/v2/{name}/blobs/sha256:{sha256}"
            self.put(blob, body)
            media = f"application/vnd.ollama.image.{kind}"
            entries.append({"mediaType": media, "digest": f"sha256:{sha256}", "size": len(body)})
            if sums:
                parts = [(at, body[at : at + sums]) for at in range(0, len(body), sums)]
                lines = [
                    f"sha256:{hashlib.sha256(part).hexdigest()} {at}-{at + len(part) - 1}"
                    for at, part in parts
                ]
                self.files[f"/v2/{name}/chunksums/sha256:{sha256}"] = "\n".join(lines).encode()
        self.put_manifest(name, tag, entries)

    def put_manifest(self, name: str, tag: str, layers: list[dict[str, object]]) -> None:
        manifest = {"schemaVersion": 2, "config": {"digest": "sha256:" + "0" * 64}, "layers": layers}
        self.files[f"/v2/{name}/manifests/{tag}"] = json.dumps(manifest).encode()

    def gets(self, path: str) -> list[Seen]:
        return [seen for seen in self.requests if seen.method == "GET" and seen.path == path]

    def sent(self, path: str) -> int:
        """Body bytes of `path` that left the server."""
        return sum(seen.sent for seen in self.gets(path))


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    host: Host

    def do_HEAD(self) -> None:
        self._answer(head=True)

    def do_GET(self) -> None:
        self._answer(head=False)

    def _answer(self, *, head: bool) -> None:
        path = unquote(urlsplit(self.path).path)
        seen = Seen(self.command, path, {k.lower(): v for k, v in self.headers.items()})
        self.host.requests.append(seen)
        faults = self.host.faults[path]
        fault = faults.popleft() if faults and not head else Fault()
        if fault.before:
            fault.before()
        if fault.status is not None:
            self._send(seen, fault.status, fault.headers, b"" if head else fault.body or b"no")
        elif fault.endless:
            self._endless(seen, self.host.files[path])
        elif path in self.host.redirects:
            self._send(seen, 302, self.host.redirects[path], b"")
        elif path in self.host.files:
            self._file(seen, path, fault, head=head)
        else:
            self._send(seen, 404, {"X-Error-Code": "RepoNotFound"} if "/api/" in path else {}, b"not here")

    def _file(self, seen: Seen, path: str, fault: Fault, *, head: bool) -> None:
        body = self.host.files[path] if fault.body is None else fault.body
        etag = self.host.etags.get(path)
        headers = dict(fault.headers) if fault.headers else ({"ETag": etag} if etag else {})
        start, status = 0, 200
        asked = re.fullmatch(r"bytes=(\d+)-(\d*)", seen.headers.get("range", ""))
        current = seen.headers.get("if-range") in (None, etag)
        if asked and current and not fault.whole:
            start, status = int(asked[1]), 206
            if start >= len(body):
                return self._send(seen, 416, {"Content-Range": f"bytes */{len(body)}"}, b"")
            end = min(int(asked[2]) + 1 if asked[2] else len(body), len(body))
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{len(body)}"
            body = body[:end]
        if path.startswith("/api/"):
            headers["Content-Type"] = "application/json"
        return self._send(seen, status, headers, b"" if head else body[start:], fault.length, fault.reset)

    def _send(
        self,
        seen: Seen,
        status: int,
        headers: dict[str, str],
        body: bytes,
        length: int | None = None,
        reset: int | None = None,
    ) -> None:
        seen.status = status
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body) if length is None else length))
        self.end_headers()
        part = body if reset is None else body[:reset]
        try:
            for at in range(0, len(part), 65536):
                self.wfile.write(part[at : at + 65536])
                seen.sent += len(part[at : at + 65536])
            self.wfile.flush()
        except (BrokenPipeError, ConnectionResetError):
            self.close_connection = True
        if reset is not None or length is not None:
            self.close_connection = True

    def _endless(self, seen: Seen, body: bytes) -> None:
        """A chunked body that ends when the client goes, or after 200 MB."""
        seen.status = 200
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.close_connection = True
        try:
            while seen.sent < 200 << 20:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(body), body))
                seen.sent += len(body)
        except (BrokenPipeError, ConnectionResetError):
            return

    def log_message(self, format: str, *args: object) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        if not isinstance(sys.exc_info()[1], ConnectionError | ssl.SSLError):  # a client may go at any time
            super().handle_error(request, client_address)  # type: ignore[arg-type]


@contextmanager
def serving(certificate: Path | None = None) -> Iterator[Host]:
    """A host on a free port of this machine, ended with the block; over TLS with a PEM file of key and
    certificate."""
    handler = type("Handler", (_Handler,), {})
    server = _Server(("127.0.0.1", 0), handler)
    if certificate:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
    scheme = "https" if certificate else "http"
    host = handler.host = Host(f"{scheme}://127.0.0.1:{server.server_address[1]}")  # type: ignore[attr-defined]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield host
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
