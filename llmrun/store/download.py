"""One file over HTTP, whole and verified or not at all. In: a `Wanted`. Out: the file at `target`.

Bytes go to `NAME.part` beside the target, with what the server said of the file in `NAME.part.json`. A later
call goes on where the last one stopped, also after a kill: with `If-Range` where the server named a version,
and where only the digest is known, on the digest's word. The target appears when size and digest are right.

Transient failures (resets, timeouts, 408, 429, 5xx, short or empty bodies) are tried again with growing
pauses; `PATIENCE` failures in a row that bring no new byte end it. The caller holds the lock on the target.
"""

from __future__ import annotations

import hashlib
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from llmrun import __version__
from llmrun.errors import BAD_FILE, DIGEST, DOWNLOAD, NOT_FOUND, LlmrunError
from llmrun.store.disk import BLOCK, human, require_space, sha256_of, write_atomic
from llmrun.store.progress import Meter

if TYPE_CHECKING:
    import httpx

PATIENCE = 5
FIRST_PAUSE, LONGEST_PAUSE = 0.5, 15.0  # seconds
CONNECT_TIMEOUT, READ_TIMEOUT = 10.0, 60.0  # seconds
_MAGIC = b"GGUF"
_CONTENT_RANGE = re.compile(r"bytes (\d+)-\d+/(\d+)")


@dataclass(frozen=True)
class Wanted:
    """`size` and `sha256` are what the source promised, None where it promised nothing. `denied` says what
    to do when the server refuses access."""

    url: str
    size: int | None = None
    sha256: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    denied: str = "check the link, and whether it needs a login"


class _Seen(msgspec.Struct):
    """What the server said of the file whose first bytes are in the part."""

    validator: str | None = None
    total: int | None = None


class _Again(Exception):
    """A transient failure: worth another try after `pause` seconds (None: the usual), `fresh` from byte 0."""

    def __init__(self, why: str, *, pause: float | None = None, fresh: bool = False) -> None:
        super().__init__(why)
        self.pause = pause
        self.fresh = fresh


def download(wanted: Wanted, target: Path, meter: Meter) -> str:
    """Fetch `wanted` to `target`, whose folder exists; the file's SHA-256.

    DOWNLOAD, NOT_FOUND, DIGEST, BAD_FILE (no GGUF) or DISK, worded for the person who asked.
    """
    import httpx

    if target.exists():  # whole and verified, by a pull that ended before its next file
        digest = sha256_of(target)
        if wanted.sha256 in (None, digest):
            return digest
    with httpx.Client(
        follow_redirects=True, timeout=httpx.Timeout(READ_TIMEOUT, connect=CONNECT_TIMEOUT)
    ) as client:
        return _Download(wanted, target, meter, client).run()


class _Download:
    def __init__(self, wanted: Wanted, target: Path, meter: Meter, client: httpx.Client) -> None:
        self.wanted, self.target, self.meter, self.client = wanted, target, meter, client
        self.name = target.name
        self.shown = wanted.url.partition("?")[0]  # a query may hold a signature
        self.part = target.with_name(f"{target.name}.part")
        self.state = target.with_name(f"{target.name}.part.json")

    def run(self) -> str:
        fruitless, damaged, highest = 0, 0, self._have()
        while True:
            try:
                digest = self._attempt()
            except _Again as failure:
                if failure.fresh:
                    self._discard()
                fruitless = 0 if self._have() > highest else fruitless + 1
                highest = max(highest, self._have())
                if fruitless >= PATIENCE:
                    raise self._gave_up(failure) from failure.__cause__
                pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2**fruitless)
                time.sleep(pause if failure.pause is None else failure.pause)
                continue
            if self.wanted.sha256 in (None, digest):
                return self._finish(digest)
            self._discard()
            damaged, highest = damaged + 1, 0
            if damaged > 1:
                raise LlmrunError(
                    DIGEST,
                    f"{self.shown} has the SHA-256 {digest}, not {self.wanted.sha256}",
                    hint="the file there is not the one that was promised; nothing of it was kept",
                )
            self.meter.note(f"{self.name} arrived damaged and is fetched again")

    def _attempt(self) -> str:
        """Fetch what is missing; the digest of the whole part."""
        seen, have = self._seen(), self._have()
        if have and not (self.wanted.sha256 or seen.validator):
            have = 0  # nothing could tell whether the rest still belongs to it
        digest = hashlib.sha256()
        if have:
            with self.part.open("rb") as file:
                while block := file.read(BLOCK):
                    digest.update(block)
        if have and have == (self.wanted.size or seen.total):
            self.meter.at(self.name, have, have)
            return digest.hexdigest()
        with self._answer(have, seen) as response:
            start, total = self._check_answer(response, have, seen)
            if start != have:
                digest = hashlib.sha256()
            self._receive(response, start, total, digest)
        return digest.hexdigest()

    @contextmanager
    def _answer(self, have: int, seen: _Seen) -> Iterator[httpx.Response]:
        """The server's answer, with httpx's errors made ours also while the body is read."""
        import httpx

        headers = {
            "User-Agent": f"llmrun/{__version__}",
            **self.wanted.headers,
            "Accept-Encoding": "identity",  # a coded body could be neither counted nor resumed
        }
        if have:
            headers["Range"] = f"bytes={have}-"
            if seen.validator:
                headers["If-Range"] = seen.validator
        try:
            with self.client.stream("GET", self.wanted.url, headers=headers) as response:
                yield response
        except httpx.TimeoutException as error:
            raise _Again(f"no answer within {READ_TIMEOUT:.0f} s") from error
        except httpx.UnsupportedProtocol as error:
            raise LlmrunError(DOWNLOAD, f"{self.shown} leads to an address that is not HTTP") from error
        except httpx.TransportError as error:
            raise _Again(str(error) or type(error).__name__) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise LlmrunError(DOWNLOAD, f"{self.shown} could not be fetched: {error}") from error

    def _check_answer(self, response: httpx.Response, have: int, seen: _Seen) -> tuple[int, int | None]:
        """Where the body starts in the file, and how long the file is if the server says."""
        headers = response.headers
        if response.status_code == 206 and have:
            match = _CONTENT_RANGE.fullmatch(headers.get("Content-Range", ""))
            if not match or int(match[1]) != have or seen.total not in (None, int(match[2])):
                raise _Again("the server sent another part than was asked for", fresh=True)
            start = have
            total: int | None = int(match[2])
        elif response.status_code == 200:
            length = headers.get("Content-Length", "")
            start, total = 0, int(length) if length.isdigit() else None
        else:
            raise self._refusal(response)
        if response.url.scheme == "http" and self.wanted.url.startswith("https:"):
            raise LlmrunError(DOWNLOAD, f"{self.shown} leads from https to plain http, which is not followed")
        if headers.get("Content-Encoding", "identity") != "identity":
            raise LlmrunError(DOWNLOAD, f"{self.shown} is sent compressed, though that was not asked for")
        if total is not None and self.wanted.size not in (None, total):
            raise _Again(f"the server says {total} bytes where {self.wanted.size} are expected", fresh=True)
        etag = headers.get("ETag", "")
        validator = etag if etag.startswith('"') else headers.get("Last-Modified")
        write_atomic(self.state, msgspec.json.encode(_Seen(validator, total)))
        require_space(self.target.parent, (total or 0) - start)
        return start, total

    def _receive(
        self, response: httpx.Response, start: int, total: int | None, digest: hashlib._Hash
    ) -> None:
        """Append the body to the part, from byte `start` on."""
        count, reported = start, start
        self.meter.at(self.name, count, total)
        with self.part.open("r+b" if start else "wb") as file:
            file.seek(start)
            for block in response.iter_raw():
                if not count and not block.startswith(_MAGIC[: len(block)]):
                    raise self._no_gguf(block)
                count += len(block)
                if total is not None and count > total:
                    raise _Again("the server sent more than it announced", fresh=True)
                file.write(block)
                digest.update(block)
                if count - reported >= BLOCK or count == total:
                    reported = count
                    self.meter.at(self.name, count, total)
        if not count or (total is not None and count < total):
            raise _Again("the server sent an empty file" if not count else f"the body ended at {count} bytes")

    def _refusal(self, response: httpx.Response) -> Exception:
        status = response.status_code
        said = f"HTTP {status} {response.reason_phrase}".rstrip()
        if status in (401, 403):
            return LlmrunError(DOWNLOAD, f"{self.shown} may not be fetched ({said})", hint=self.wanted.denied)
        if status in (404, 410):
            return LlmrunError(NOT_FOUND, f"{self.shown} does not exist ({said})", hint="check the name")
        if status == 416:
            return _Again(f"the part fetched before does not fit the file any more ({said})", fresh=True)
        if status in (408, 429) or status >= 500:
            after = response.headers.get("Retry-After", "")
            pause = float(after) if after.isdigit() else None
            if pause is None or pause <= LONGEST_PAUSE:
                return _Again(said, pause=pause)
            return LlmrunError(
                DOWNLOAD, f"{self.shown} is refused for now ({said})", hint=f"pull again in {after} seconds"
            )
        return LlmrunError(DOWNLOAD, f"{self.shown} could not be fetched ({said})", hint="check the link")

    def _gave_up(self, failure: _Again) -> LlmrunError:
        kept = self._have()
        hint = f"pull again: {human(kept)} are kept and not fetched anew" if kept else "pull again later"
        if "CERTIFICATE_VERIFY_FAILED" in str(failure):
            hint = "set SSL_CERT_FILE to your network's certificate file"
        return LlmrunError(DOWNLOAD, f"{self.shown} could not be fetched: {failure}", hint=hint)

    def _no_gguf(self, block: bytes) -> LlmrunError:
        self._discard()
        what = "a web page" if block.lstrip().startswith(b"<") else f"bytes that start with {block[:4]!r}"
        return LlmrunError(
            BAD_FILE,
            f"{self.shown} sent {what}, no GGUF file",
            hint="use the link that downloads the file itself",
        )

    def _finish(self, digest: str) -> str:
        with self.part.open("rb") as file:
            os.fsync(file.fileno())
        self.part.replace(self.target)
        self.state.unlink(missing_ok=True)
        return digest

    def _have(self) -> int:
        return self.part.stat().st_size if self.part.exists() else 0

    def _seen(self) -> _Seen:
        try:
            return msgspec.json.decode(self.state.read_bytes(), type=_Seen)
        except (FileNotFoundError, msgspec.DecodeError):
            return _Seen()

    def _discard(self) -> None:
        self.part.unlink(missing_ok=True)
        self.state.unlink(missing_ok=True)
