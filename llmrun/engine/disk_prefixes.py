"""Saved prefixes as files, so that they outlive the process.

`llmrun.store.kv_files` has the layout of a file. It is written beside its place and renamed. Files lie in one
folder per key; the key names the model's bytes and everything else that the KV depends on, so that a foreign
file is never looked at. A file that is damaged, cut short or gone is a miss.

The bound holds for all keys of the cache together: several runners may share it, each looks before it
writes. A file's time is when it was last used.
"""

from __future__ import annotations

import contextlib
import os
import queue
import secrets
import struct
import threading
import zlib
from pathlib import Path

import numpy as np

from llmrun import log
from llmrun.engine.kv_memory import SavedState
from llmrun.engine.prefix_tree import PrefixTree
from llmrun.engine.resident import Tokens
from llmrun.engine.saved_prefixes import NOTHING_SAVED, Saved
from llmrun.store.kv_files import HEAD, MAGIC, SUFFIX, kv_files

_MAX_TOKENS = 1 << 24
_QUEUED = 2
"""Files that may wait to be written; while so many do, a further one is not kept: memory is bounded."""


class DiskPrefixes:
    """The files of one key below `root`, at most `capacity` bytes with those of all other keys.

    Files are written on a thread of its own; everything else happens on the caller's, one at a time.
    `whole`: see `SavedPrefixes`.
    """

    def __init__(self, root: Path, key: str, capacity: int, *, whole: bool = False) -> None:
        self._whole = whole
        self._root = root
        self._folder = root / key
        self._capacity = capacity
        self._lock = threading.Lock()  # over the tree and the lengths
        self._tree: PrefixTree[str] = PrefixTree()
        self._tokens: dict[str, Tokens] = {}
        self._sizes: dict[str, int] = {}
        self.size = 0
        """Bytes of the files of this key, as far as nobody else removed any."""
        self._queue: queue.Queue[tuple[Tokens, SavedState] | None] = queue.Queue(_QUEUED)
        self.ready = threading.Event()
        """Set once the files that were there are known; until then they are misses."""
        self._writer = threading.Thread(target=self._work, name="kv-files", daemon=True)
        self._writer.start()

    def put(self, tokens: Tokens, state: SavedState, *, wait: bool = False) -> bool:
        """Have the prefix written. Without `wait`, False where the writer is behind: try again."""
        if len(state) > self._capacity or self.holds(tokens):
            return True
        try:
            self._queue.put((tokens.copy(), state), block=wait)
        except queue.Full:
            return False
        return True

    def find(self, tokens: Tokens) -> Saved:
        """The file that shares most with a prompt."""
        with self._lock:
            shared, name = self._tree.longest(tokens, self._whole)
            return NOTHING_SAVED if name is None else Saved(name, shared, len(self._tokens[name]))

    def holds(self, tokens: Tokens) -> bool:
        """Whether a file has exactly this prefix, or one that begins with it and can be cut to it."""
        return self.find(tokens).shared == len(tokens)

    def take(self, key: str) -> SavedState | None:
        """The KV in a file; None, and the file is forgotten, where it cannot be had."""
        path = self._folder / key
        try:
            data = path.read_bytes()
            os.utime(path)
        except OSError:
            self._forget(key)
            return None
        with self._lock:
            tokens = self._tokens.get(key)
        state = _state(data, tokens)
        if state is None:
            log.ROOT.warning("%s is damaged and was removed; its prompt is computed again", path)
            self._forget(key)
            path.unlink(missing_ok=True)
        return state

    def close(self) -> None:
        """Write what is queued, and end the writer."""
        self._queue.put(None)
        self._writer.join()

    # --- the writer's thread

    def _work(self) -> None:
        with contextlib.suppress(OSError):
            self._read_folder()
        self.ready.set()
        while (item := self._queue.get()) is not None:
            if not self.holds(item[0]):
                self._write_or_say(*item)

    def _write_or_say(self, tokens: Tokens, state: SavedState) -> None:
        try:
            self._write(tokens, state)
        except Exception as error:  # whatever it is, the writer goes on: `close` waits for it
            log.ROOT.warning("a KV prefix could not be kept in %s: %s", self._folder, error)

    def _read_folder(self) -> None:
        for path in self._folder.glob("*" + SUFFIX):
            tokens = _tokens_of(path)
            if tokens is None:
                path.unlink(missing_ok=True)
            else:
                with contextlib.suppress(OSError):  # another runner removed it
                    self._remember(path.name, tokens, path.stat().st_size)

    def _write(self, tokens: Tokens, state: SavedState) -> None:
        body = struct.pack("<I", len(tokens)) + tokens.astype("<i4").tobytes()
        checksum = zlib.crc32(state, zlib.crc32(body))
        self._remove_needless(tokens)
        size = len(MAGIC) + 4 + len(body) + len(state)
        self._make_room(size)
        self._folder.mkdir(parents=True, exist_ok=True)
        self._folder.chmod(0o700)  # they hold what people wrote: nobody else's business
        name = secrets.token_hex(8) + SUFFIX
        partial = self._folder / f"{name}.part"
        try:
            with os.fdopen(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(MAGIC + struct.pack("<I", checksum) + body)
                file.write(state)
            partial.replace(self._folder / name)
        except OSError:
            partial.unlink(missing_ok=True)
            raise
        self._remember(name, tokens, size)

    def _remove_needless(self, tokens: Tokens) -> None:
        """Remove the files of beginnings of `tokens`: cut, the new one serves in their place."""
        if self._whole:
            return
        with self._lock:
            needless = self._tree.prefixes(tokens)
        for name in needless:
            self._forget(name)
            (self._folder / name).unlink(missing_ok=True)

    def _make_room(self, wanted: int) -> None:
        """Remove the files used longest ago, of any key, until so many bytes may be added."""
        files = sorted(kv_files(self._root))
        total = sum(size for _, size, _ in files)
        for _, size, path in files:
            if total + wanted <= self._capacity:
                return
            path.unlink(missing_ok=True)
            total -= size
            if path.parent == self._folder:
                self._forget(path.name)

    def _remember(self, name: str, tokens: Tokens, size: int) -> None:
        with self._lock:
            self._tree.add(tokens, name)
            self._tokens[name] = tokens
            self._sizes[name] = size
            self.size += size

    def _forget(self, name: str) -> None:
        with self._lock:
            if (tokens := self._tokens.pop(name, None)) is not None:
                self._tree.remove(tokens, name)
                self.size -= self._sizes.pop(name)


def _tokens_of(path: Path) -> Tokens | None:
    """The tokens that a file says it is for; None where it is no such file. The KV is not read."""
    try:
        with path.open("rb") as file:
            head = file.read(HEAD.size)
            if len(head) < HEAD.size:
                return None
            magic, _, count = HEAD.unpack(head)
            if magic != MAGIC or not 0 < count <= _MAX_TOKENS:
                return None
            raw = file.read(4 * count)
    except OSError:
        return None
    return np.frombuffer(raw, "<i4").astype(np.int32) if len(raw) == 4 * count else None


def _state(data: bytes, tokens: Tokens | None) -> SavedState | None:
    """The KV in a file's bytes, if they are whole and for these tokens."""
    if len(data) < HEAD.size or tokens is None:
        return None
    magic, checksum, count = HEAD.unpack_from(data)
    start = HEAD.size + 4 * len(tokens)
    if magic != MAGIC or count != len(tokens) or len(data) < start:
        return None
    if zlib.crc32(memoryview(data)[len(MAGIC) + 4 :]) != checksum:
        return None
    if not np.array_equal(np.frombuffer(data[HEAD.size : start], "<i4"), tokens):
        return None
    return memoryview(data)[start:]
