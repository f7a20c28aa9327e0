"""The best beginning that a prompt can have without computing it: shared, awaited or brought back. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

from llmrun.engine.request import Adapters
from llmrun.engine.resident import Resident, Tokens, common_prefix
from llmrun.engine.saved_prefixes import NOTHING_SAVED, Saved, SavedPrefixes
from llmrun.engine.sequence import Sequence

# Waiting for another sequence's prefill is worth a step or two from about this many tokens on.
MIN_FOLLOW = 16


class Match(NamedTuple):
    """The best prefix of a prompt, in `source` or else in `saved`. `growing`: more of it is about to be
    computed there."""

    source: Resident | None
    length: int
    growing: bool
    saved: Saved = NOTHING_SAVED

    @property
    def cells(self) -> int:
        """Cells that it takes to bring it back, more than its length where it is then cut."""
        return self.saved.total


NO_MATCH = Match(None, 0, False)


def among_running(
    best: Match,
    prompt: Tokens,
    adapters: Adapters,
    running: Iterable[Sequence],
    shareable: Callable[[Resident, int], bool],
) -> Match:
    """The best match of those with a running sequence, if it is better than `best`. `shareable`: whether a
    sequence may go on from so many tokens of another's."""
    for other in running:
        assert other.kv is not None
        if other.kv.adapters != adapters:
            continue
        length = common_prefix(prompt, other.tokens)
        if length >= max(best.length, other.computed) + MIN_FOLLOW:
            return Match(other.kv, length, True)
        shared = min(length, other.computed)
        if shared > best.length and shareable(other.kv, shared):
            best = Match(other.kv, shared, False)
    return best


def among_saved(best: Match, prompt: Tokens, adapters: Adapters, saved: SavedPrefixes, most: int) -> Match:
    """The saved match, if it is clearly better than `best` and has at most `most` tokens in all."""
    if not saved.on or len(prompt) < best.length + saved.least:
        return best
    found = saved.find(prompt, adapters)
    if found.shared < best.length + saved.least or found.total > most:
        return best
    return Match(None, found.shared, False, found)
