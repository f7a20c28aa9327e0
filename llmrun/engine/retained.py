"""Prefixes of ended sequences that stay in the KV cache: found by their tokens, evicted by their age."""

from __future__ import annotations

from collections.abc import Iterator

from llmrun.engine.prefix_tree import PrefixTree
from llmrun.engine.request import Adapters
from llmrun.engine.resident import Resident, Tokens, under


class RetainedPrefixes:
    """Least recently used first. A resident's tokens must not change while it is in here."""

    def __init__(self) -> None:
        self._tree: PrefixTree[Resident] = PrefixTree()
        self._order: dict[Resident, None] = {}

    def __iter__(self) -> Iterator[Resident]:
        return iter(self._order)

    def __len__(self) -> int:
        return len(self._order)

    def __contains__(self, kv: object) -> bool:
        return kv in self._order

    def add(self, kv: Resident) -> None:
        """Take a resident over as the newest. Its tokens from now on are those that are computed."""
        kv.tokens = kv.tokens[: kv.length].copy()
        self._order[kv] = None
        self._tree.add(under(kv.adapters, kv.tokens), kv)

    def remove(self, kv: Resident) -> None:
        """Give it away."""
        del self._order[kv]
        self._tree.remove(under(kv.adapters, kv.tokens), kv)

    def touch(self, kv: Resident) -> None:
        """It was of use: it becomes the newest, if it is in here."""
        if kv in self._order:
            del self._order[kv]
            self._order[kv] = None

    def oldest(self, keep: Resident | None = None) -> Resident | None:
        """The least recently used other than `keep`."""
        return next((kv for kv in self._order if kv is not keep), None)

    def longest(self, prompt: Tokens, adapters: Adapters, whole: bool) -> tuple[int, Resident | None]:
        """How many tokens of a prompt one of them has, and which; `whole`: only one the prompt has all of."""
        length, kv = self._tree.longest(under(adapters, prompt), whole)
        shared = length - len(adapters)
        return (shared, kv) if shared > 0 else (0, None)

    def beginnings(self, kv: Resident) -> list[Resident]:
        """Those whose every token the computed ones of `kv` begin with."""
        return self._tree.prefixes(under(kv.adapters, kv.tokens[: kv.length]))
