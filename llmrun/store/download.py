"""One file over HTTP, whole and verified or not at all. In: a `Wanted`. Out: the file at `target`.

Where the server takes ranges, several connections fetch runs of the file at once (`fetching`); every block is
recorded as it is written (`part`), so that a kill costs what no block holds yet. A later call goes on where
the last one stopped: with `If-Range` where the server named a version, on the digest's word where only the
digest is known. Where neither is, one connection fetches the file in one go.

The target appears when size and digest are right. Where the digest is wrong, only what is wrong is fetched
again: blocks that the disk spoilt, then ranges whose own sums the source knows. Where it knows none, the file
is read a second time beside the first, and the first difference that mends the digest ends that.

Transient failures (resets, timeouts, 408, 429, 5xx, short or empty bodies) are tried again with growing
pauses; a few in a row that bring no new byte end it. The caller holds the lock on the target.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

from llmrun.errors import DIGEST, LlmrunError
from llmrun.store import web
from llmrun.store.disk import human, sha256_of
from llmrun.store.fetching import Fetching
from llmrun.store.part import Part
from llmrun.store.progress import Meter
from llmrun.store.wanted import Wanted

_ROUNDS = 4  # of mending: each ends with a whole file, so more of them mean that the source is at fault


def download(wanted: Wanted, target: Path, meter: Meter) -> str:
    """Fetch `wanted` to `target`, whose folder exists; the file's SHA-256.

    DOWNLOAD, NOT_FOUND, DIGEST, BAD_FILE (no GGUF) or DISK, worded for the person who asked.
    """
    if target.exists():  # whole and verified, by a pull that ended before its next file
        digest = sha256_of(target)
        if wanted.sha256 in (None, digest):
            return digest
    return _Download(wanted, target, meter).run()


class _Download:
    def __init__(self, wanted: Wanted, target: Path, meter: Meter) -> None:
        self.wanted, self.meter = wanted, meter
        self.name = target.name
        self.part = Part(target)
        self.fetching = Fetching(wanted, self.part, meter)

    def run(self) -> str:
        digest = self._fetch()
        for _ in range(_ROUNDS):
            bad = self._known_bad(digest)
            if not bad:
                break
            self.meter.note(
                f"{human(sum(end - start for start, end in bad))} of {self.name} are fetched again"
            )
            for start, end in bad:
                self.part.drop(start, end)
            digest = self._fetch()
        if self.wanted.sha256 not in (None, digest):
            digest = self._compare()
        if self.wanted.sha256 in (None, digest):
            self.part.finish()
            return digest
        self.part.discard()
        raise LlmrunError(
            DIGEST,
            f"{web.shown(self.wanted.url)} has the SHA-256 {digest}, not {self.wanted.sha256}",
            hint="the file there is not the one that was promised; nothing of it was kept",
        )

    def _fetch(self, *, until_change: bool = False) -> str:
        """Bring what is missing; the digest of the whole."""
        asyncio.run(self.fetching.run(until_change=until_change))
        size = self.part.path.stat().st_size
        return self.part.digest(lambda done: self.meter.at(self.name, done, size, "verify"))

    def _known_bad(self, digest: str) -> list[tuple[int, int]]:
        """The ranges that are known to be wrong in a file with this digest."""
        if digest == self.wanted.sha256:
            return []
        if damaged := self.part.damaged():
            return [(extent.start, extent.end) for extent in damaged]
        if not (self.wanted.sha256 and self.wanted.sums):
            return []
        sums = self.wanted.sums(self.wanted.sha256, self.part.size)
        return [(s.start, s.end) for s in sums if self.part.range_digest(s.start, s.end) != s.sha256]

    def _compare(self) -> str:
        """Read the file a second time, keeping what is new; the digest in the end."""
        self.meter.note(f"{self.name} arrived damaged; it is read again until the damage is found")
        self.part.compare()
        for until_change in (*[True] * (_ROUNDS - 1), False):
            digest = self._fetch(until_change=until_change)
            if digest == self.wanted.sha256 or not any(self.part.gaps(self.part.size)):
                break
        return digest
