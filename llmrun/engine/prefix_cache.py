"""The cells and slots of the KV cache, and the prefixes that stay in it without a sequence that runs.

A sequence that ends leaves what it computed behind. It stays until its cells or its slot are needed; then the
least recently used goes first, and is saved (in host memory, on disk) where it is long enough. Pure: effects
leave through `KVMemory`. Knows no requests and no order in which they run.

Where sequences share one cache on a CPU, each row of a step looks at all cells up to the last one in use, if
only to pass over those of others: a thousand cells of ended sequences cost a tiny model's step a tenth of its
time, a full cache most of it. Bringing a prefix back from host memory takes some 3 ms for a thousand tokens.
So they go there as soon as they have more cells than `most_retained`: all but the newest when a sequence
ends, and that too when one begins that has another beginning. And as one left far behind would keep all the
cells before it in sight, they are gathered at the front when nothing runs.
"""

from __future__ import annotations

from heapq import heappop, heappush

from llmrun.engine.cells import Cells
from llmrun.engine.kv_memory import KVMemory, SavedState
from llmrun.engine.matching import NO_MATCH, Match
from llmrun.engine.resident import Resident
from llmrun.engine.retained import RetainedPrefixes
from llmrun.engine.saved_prefixes import Saved, SavedPrefixes

_SPREAD = 256  # cells that were in use and are not, from which on gathering is worth its copies


class PrefixCache:
    """`free + retained + running = total` of its cells holds after every call.

    saved          where prefixes go that leave the KV cache
    most_retained  cells that they may keep in it, where host memory takes any; None: all
    """

    def __init__(
        self,
        memory: KVMemory,
        cells: Cells,
        *,
        slots: int,
        saved: SavedPrefixes,
        most_retained: int | None = None,
    ) -> None:
        self._memory = memory
        self.cells = cells
        self.most_retained = most_retained if saved.in_memory else None
        self.free_slots = list(range(slots))
        self.retained = RetainedPrefixes()
        self.saved = saved
        self._new: dict[Resident, None] = {}  # retained ones that were not offered to the disk
        self._too_long: int | None = None  # tokens from which on host memory took none

    # --- room

    def take_slot(self, keep: Resident | None = None) -> int:
        """A slot for a new sequence; without a free one a prefix other than `keep` goes."""
        if not self.free_slots:
            self.evict(keep)
        return heappop(self.free_slots)  # the lowest: neighbours compute together in any layout

    def spare(self, wanted: int) -> int:
        """As many of the wanted cells as are free, or can be by giving up retained prefixes."""
        while self.cells.free < wanted and self.evict():
            pass
        return min(self.cells.free, wanted)

    def fits(self, count: int, match: Match = NO_MATCH) -> bool:
        """Make `count` cells free by evicting retained prefixes, if that is enough; the matched part
        of one stays."""
        source = match.source if match.source in self.retained else None
        if count > self.cells.free + self.cells.retained - (match.length if source else 0):
            return False
        while self.cells.free < count and self.evict(keep=source):
            pass
        if self.cells.free < count and source is not None:
            self._cut(source, match.length)
        return self.cells.free >= count

    def evict(self, keep: Resident | None = None) -> bool:
        """Save and drop the least recently used prefix other than `keep`, if there is one."""
        victim = self.retained.oldest(keep)
        if victim is None:
            return False
        self.retained.remove(victim)
        if victim.length >= self.saved.least:
            self._save(victim)
        self.drop(victim)
        return True

    def evict_all(self) -> bool:
        """Save and drop every retained prefix; False: there was none."""
        some = False
        while self.evict():
            some = True
        return some

    def drop(self, kv: Resident) -> None:
        """Give up the cells and the slot of what nothing runs in."""
        self._new.pop(kv, None)
        self._memory.drop(kv.slot)
        self.cells.release(kv.cells)
        heappush(self.free_slots, kv.slot)

    # --- prefixes come and go

    def retain(self, kv: Resident) -> None:
        """Keep what a sequence that has ended computed."""
        self.cells.unpin(kv.cells)
        if not kv.length:
            self.drop(kv)
            return
        for other in self.retained.beginnings(kv):
            if other.length == kv.length or not self.saved.whole:  # cut, the new one serves in its place
                self.retained.remove(other)
                self.drop(other)
        self.retained.add(kv)
        self._new[kv] = None
        self.make_way(kv)

    def make_way(self, keep: Resident | None = None) -> None:
        """Move prefixes other than `keep` to host memory, out of the way of those that run, until no more are
        left than may stay; or to where one is too large for it."""
        most = self.most_retained
        while most is not None and self.cells.retained > most:
            victim = self.retained.oldest(keep)
            if victim is None or not self._may_leave(victim):
                return
            self.retained.remove(victim)
            self.drop(victim)

    def _may_leave(self, kv: Resident) -> bool:
        if kv.length < self.saved.least:
            return True
        if self._too_long is not None and kv.length >= self._too_long:
            return False
        if self._save(kv):
            return True
        self._too_long = kv.length
        return False

    def may_give(self, kv: Resident, length: int) -> bool:
        """Whether a new sequence moves into a retained prefix itself: all of it is wanted, or its
        slot is the last to be had."""
        return length == kv.length or not (self.free_slots or len(self.retained) > 1)

    def give(self, kv: Resident, length: int) -> Resident:
        """Hand the first `length` tokens of a retained prefix over to a sequence that runs in its slot."""
        kv = self._cut(kv, length)
        self.retained.remove(kv)
        self._new.pop(kv, None)
        self.cells.pin(kv.cells)
        return kv

    def share(self, source: Resident, kv: Resident, length: int) -> None:
        """Let an empty `kv` begin with the cells of another, which may run or be retained."""
        self._memory.share(source.slot, kv.slot, length)
        kv.extend(self.cells.share(source.cells[:length].copy()))
        self.retained.touch(source)

    def bring_back(self, kv: Resident, saved: Saved, state: SavedState | None) -> int:
        """Restore into an empty `kv` what a prompt shares with a saved prefix, `state` by `saved.take`; how
        many tokens: 0 where it cannot be had."""
        if state is None or not self._restored(kv, state, saved.total):
            self._memory.drop(kv.slot)
            return 0
        if saved.shared < saved.total:
            self._memory.trim(kv.slot, saved.shared)
        kv.extend(self.cells.allocate(saved.shared))
        return saved.shared

    def _restored(self, kv: Resident, state: SavedState, total: int) -> bool:
        """Whether the slot has the state now, and that is of as many tokens as it was saved under."""
        return self._memory.restore(kv.slot, state) and self._memory.length(kv.slot) == total

    def _cut(self, kv: Resident, length: int) -> Resident:
        """Keep only the first `length` tokens of a retained prefix, the rest where it can be saved."""
        if length < kv.length:
            self.retained.remove(kv)
            if kv.length >= length + self.saved.least:
                self._save(kv)
            self._memory.trim(kv.slot, length)
            self.cells.release(kv.cells[length:].copy())
            kv.length = length
            self.retained.add(kv)
        return kv

    def gather(self) -> bool:
        """Move what is retained to the front of the cache. Only while nothing runs. False, and nothing is
        moved: where it cannot lie far behind, where more is retained than may stay, or where two prefixes
        share cells, for each would then have its own."""
        cells, most = self.cells, self.most_retained
        if most is None or cells.running or cells.peak - cells.used < max(_SPREAD, most):
            return False
        tokens = sum(kv.length for kv in self.retained)
        if tokens > min(most, cells.retained):  # more than cells: some are shared
            return False
        moving = [(kv, self._memory.save(kv.slot)) for kv in self.retained]
        for kv, _ in moving:
            self._memory.drop(kv.slot)
        for kv, state in moving:
            if not self._memory.restore(kv.slot, state):
                self.retained.remove(kv)
                self.saved.put(kv.tokens, state, kv.adapters)
                self.drop(kv)
        cells.reset_peak()
        return True

    # --- what outlives the KV cache

    def _save(self, kv: Resident) -> bool:
        """Whether host memory has it then."""
        if not self.saved.on:
            return False
        if self.saved.holds(kv.tokens, kv.adapters):
            return True
        return self.saved.put(kv.tokens, self._memory.save(kv.slot), kv.adapters)

    def tidy_one(self) -> bool:
        """Do one thing that can wait until nothing runs; False: nothing was left to do."""
        return self.gather() or self.persist_one()

    def persist_one(self) -> bool:
        """Put the next prefix that only memory has on the disk too, each once; False: all were."""
        while self._new:
            kv = next(iter(self._new))
            if kv.length < self.saved.least or self.saved.holds_on_disk(kv.tokens, kv.adapters):
                del self._new[kv]
                continue
            if self.saved.persist(kv.tokens, self._memory.save(kv.slot), kv.adapters):
                del self._new[kv]
            return True
        return self.saved.persist_one()

    def close(self) -> None:
        """Save everything that is retained; returns when it is where it goes."""
        self.evict_all()
        self.saved.close()
