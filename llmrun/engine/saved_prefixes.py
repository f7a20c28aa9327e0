"""Prefixes that left the KV cache: in host memory, and behind it on disk.

In: the tokens of a prefix and its KV as llama.cpp saves it. Out: the longest that a prompt begins with.
Both tiers are bounded in bytes; what was not used for longest goes first, out of memory to disk and off
the disk for good. Nothing here knows a context, a slot or a cell.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import NamedTuple, Protocol

from llmrun.engine.kv_memory import SavedState
from llmrun.engine.prefix_tree import PrefixTree
from llmrun.engine.request import Adapters
from llmrun.engine.resident import Tokens, under


class Saved(NamedTuple):
    """A saved prefix and how many of its tokens a prompt shares. `total`: tokens it will fill cells with."""

    key: int | str
    shared: int
    total: int


NOTHING_SAVED = Saved(-1, 0, 0)


class Shelf(Protocol):
    """What lies behind the host memory: `llmrun.engine.disk_prefixes`. Nothing raises for the disk's sake."""

    size: int

    def put(self, tokens: Tokens, state: SavedState, *, wait: bool = False) -> bool: ...
    def find(self, tokens: Tokens) -> Saved: ...
    def take(self, key: str) -> SavedState | None: ...
    def holds(self, tokens: Tokens) -> bool: ...
    def close(self) -> None: ...


class _Kept(NamedTuple):
    tokens: Tokens
    state: SavedState


class SavedPrefixes:
    """Two tiers as one. Used by the engine's thread.

    ram    bytes that may lie in host memory; 0: none do
    disk   where the rest goes; None: nowhere
    least  tokens from which on saving is worth it: fewer are computed as fast as they are brought back
    whole  a prefix serves only prompts that begin with all of it (see `Model.saves_whole`)
    """

    def __init__(
        self,
        ram: int = 0,
        disk: Shelf | None = None,
        *,
        least: int = 64,
        whole: bool = False,
    ) -> None:
        self.least = least
        self._ram = ram
        self._disk = disk
        self.whole = whole
        self._tree: PrefixTree[int] = PrefixTree()
        self._kept: OrderedDict[int, _Kept] = OrderedDict()  # least recently used first
        self._new: dict[int, None] = {}  # those of them that were not offered to the disk
        self._next = 0
        self.ram_bytes = 0
        self.ram_hits = self.disk_hits = 0

    @property
    def on(self) -> bool:
        """Whether anything can be kept at all."""
        return self._ram > 0 or self._disk is not None

    @property
    def in_memory(self) -> bool:
        """Whether any lie in host memory."""
        return self._ram > 0

    @property
    def disk_bytes(self) -> int:
        """Bytes of the files that are known."""
        return 0 if self._disk is None else self._disk.size

    def put(self, tokens: Tokens, state: SavedState, adapters: Adapters = ()) -> bool:
        """Keep a prefix, in place of those that it begins with; one that begins with it serves as well.
        Returns whether host memory has it now."""
        if self.holds(tokens, adapters):
            return True
        tokens = under(adapters, tokens)
        if len(state) > self._ram:
            if self._disk is not None:
                self._disk.put(tokens, state)
            return False
        if not self.whole:
            for key in self._tree.prefixes(tokens):
                self._forget(key)
        key, self._next = self._next, self._next + 1
        self._kept[key] = _Kept(tokens.copy(), state)
        self._new[key] = None
        self._tree.add(tokens, key)
        self.ram_bytes += len(state)
        while self.ram_bytes > self._ram:
            oldest = self._forget(next(iter(self._kept)))
            if self._disk is not None:
                self._disk.put(*oldest)
        return True

    def find(self, tokens: Tokens, adapters: Adapters = ()) -> Saved:
        """The saved prefix that shares most with a prompt; on a tie the one in memory."""
        tokens = under(adapters, tokens)
        shared, key = self._tree.longest(tokens, self.whole)
        best = NOTHING_SAVED if key is None else Saved(key, shared, len(self._kept[key].tokens))
        if self._disk is not None and best.shared < len(tokens):
            stored = self._disk.find(tokens)
            best = stored if stored.shared > best.shared else best
        words = len(adapters)
        return (
            Saved(best.key, best.shared - words, best.total - words) if best.shared > words else NOTHING_SAVED
        )

    def take(self, saved: Saved) -> SavedState | None:
        """The KV of what `find` found; None where the disk has lost it or it is damaged."""
        if isinstance(saved.key, str):
            state = self._disk.take(saved.key) if self._disk is not None else None
            self.disk_hits += state is not None
        else:
            kept = self._kept.get(saved.key)
            state = kept and kept.state
            if kept:
                self._kept.move_to_end(saved.key)
                self.ram_hits += 1
        return state

    def persist(self, tokens: Tokens, state: SavedState, adapters: Adapters = ()) -> bool:
        """Put a prefix that stays resident on the disk too, in case the process ends. False: try again."""
        return self._disk is None or self._disk.put(under(adapters, tokens), state)

    def persist_one(self) -> bool:
        """Put the next of those in host memory on the disk too; False: all were."""
        if self._disk is None or not self._new:
            return False
        key = next(iter(self._new))
        if self._disk.put(*self._kept[key]):
            del self._new[key]
        return True

    def holds_on_disk(self, tokens: Tokens, adapters: Adapters = ()) -> bool:
        """Whether nothing is to be gained by `persist`."""
        return self._disk is None or self._disk.holds(under(adapters, tokens))

    def close(self) -> None:
        """Bring what is in memory to the disk, and wait until it is there."""
        if self._disk is not None:
            for kept in self._kept.values():
                self._disk.put(*kept, wait=True)
            self._disk.close()

    def holds(self, tokens: Tokens, adapters: Adapters = ()) -> bool:
        """Whether host memory has a prefix, or one that begins with it and can be cut to it."""
        tokens = under(adapters, tokens)
        shared, key = self._tree.longest(tokens)
        if key is None or shared < len(tokens):
            return False
        return not self.whole or len(self._kept[key].tokens) == len(tokens)

    def _forget(self, key: int) -> _Kept:
        kept = self._kept.pop(key)
        self._new.pop(key, None)
        self._tree.remove(kept.tokens, key)
        self.ram_bytes -= len(kept.state)
        return kept
