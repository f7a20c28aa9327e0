"""Which tokens of which sequences the next step computes, and whose KV stays in memory.

Pure: no clock, no thread, no native code. Effects on the KV cache go out through `KVMemory`, which
the context implements and tests record.

The rules
- Sequences that adapters set apart take turns (see `turns`); they share no KV.
- Decode rows first, one token each, and what grammars forced behind them as far as the budget goes;
  then prefill chunks: half for the oldest prompt, the rest for the shortest (`budget.shares`).
- A waiting prompt begins with the longest prefix that any resident sequence has: cells are shared,
  not copied. If a running sequence is about to compute more of that prefix, the prompt waits for it.
  Where a saved prefix (in host memory, on disk) has clearly more, it is brought back instead.
- Who begins next is decided by `fair_queue`: by priority, then clients take turns.
- A prompt whose own log probabilities are wanted is computed from its start, `scored_rows` of these a step.
- A prompt is admitted when all admitted prompts fit into the cells that are free or retained.
- Answers grow. When cells run out, retained prefixes go first (see `prefix_cache`); then the youngest
  running sequence is swapped out to host memory. It comes back before anything new begins.
  The oldest sequence is never swapped out, so it ends, and then the next is the oldest.
"""

from __future__ import annotations

from collections import deque
from itertools import islice

from llmrun.engine.cells import Cells
from llmrun.engine.fair_queue import FairQueue
from llmrun.engine.kv_memory import KVMemory
from llmrun.engine.matching import Match, among_running, among_saved
from llmrun.engine.prefix_cache import PrefixCache
from llmrun.engine.resident import Resident
from llmrun.engine.rows import Row, rows_of
from llmrun.engine.saved_prefixes import SavedPrefixes
from llmrun.engine.sequence import Sequence, State
from llmrun.engine.turns import Turns


class Scheduler:
    """All sequences of one context. Calls come from one thread.

    cells      of the KV cache           unified    whether all slots share them; else each has its part
    parallel   sequences that may run together          slots  parallel + prefixes that may be retained
    trimmable  whether a prefix of a resident sequence can be shared; else only the whole of it is taken
    sliding_window  tokens from which on only the whole of it is taken too: see `Resident.shareable`
    saved      where prefixes go that leave the KV cache      most_retained  cells that they may keep in it
    scored_rows  scored prompt tokens in a step
    `prefixes` has the cells and slots, and what sequences that ended left in them.
    """

    def __init__(
        self,
        memory: KVMemory,
        *,
        cells: int,
        slots: int,
        parallel: int,
        unified: bool = True,
        trimmable: bool = True,
        sliding_window: int = 0,
        scored_rows: int = 1,
        saved: SavedPrefixes | None = None,
        most_retained: int | None = None,
    ) -> None:
        self._memory = memory
        self.prefixes = PrefixCache(
            memory,
            Cells(cells, 1 if unified else slots),
            slots=slots,
            saved=saved or SavedPrefixes(),
            most_retained=most_retained,
        )
        self.cells = self.prefixes.cells
        self.parallel = parallel
        self._trimmable = trimmable
        self._sliding_window = sliding_window
        self._unified = unified
        self._spoiled = False  # whether some cells hold what is no number
        self._searches = 0  # of llama.cpp's for free cells: each step is one, and each restore
        self._scored_rows = scored_rows
        self.waiting = FairQueue()
        self.swapped: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.preemptions = 0
        self.shared = 0  # sequences that began with cells of another
        self._turns = Turns()

    @property
    def idle(self) -> bool:
        return not (self.running or self.swapped or self.waiting)

    @property
    def wants_more(self) -> bool:
        """Whether the next step could have more than a token of each answer."""
        return any(s.pending > 1 or not s.decoding for s in self.running)

    def add(self, sequence: Sequence) -> None:
        """Queue a new sequence. Its tokens fit into the context."""
        self.waiting.add(sequence)

    def admit(self) -> None:
        """Let run what there is room for: who is swapped out first, then who waits."""
        if self._spoiled:
            self._start_over()
        self._secure_decode()
        self._resume()
        self._begin_waiting()

    def plan(self, budget: int) -> list[Row]:
        """The rows of the next step, behind `admit`; at most `budget` tokens, if that leaves every decoding
        sequence its row. Empty only when there is nothing to do."""
        rows = self._rows(budget)
        while not rows and self.running:  # prompts alone fill the cells: the younger make room
            self._free_some()
            rows = self._rows(budget)
        return rows

    def computed(self, rows: list[Row]) -> None:
        """The rows were decoded: their tokens are resident. Of drafts behind them `keep` decides."""
        self._searches += 1
        for sequence, length, _ in rows:
            assert sequence.kv is not None
            sequence.kv.compute(self.cells.allocate(length), self._searches)

    def undo(self, rows: list[Row]) -> None:
        """The rows were tried, and not computed or in part: the memory goes back to what sequences know."""
        self._searches += 1
        for sequence, _, _ in rows:
            sequence.draft = ()
            self._cut(sequence, sequence.computed)

    def keep(self, sequence: Sequence, accepted: int) -> None:
        """Of the sequence's draft, which was computed, the first `accepted` tokens became part of the answer;
        the rest is cut away."""
        kv, drafted = sequence.kv, len(sequence.draft)
        sequence.draft = ()
        assert kv is not None
        if accepted:
            kv.extend(self.cells.allocate(accepted))
        if accepted < drafted:
            self._memory.trim(kv.slot, kv.length)

    def shift(self, sequence: Sequence) -> None:
        """Leave out the oldest part of a full answer; what is behind it is computed anew."""
        kv = sequence.kv
        assert kv is not None
        keep = min(sequence.leave_out(), kv.length)
        self._cut(sequence, keep if self._shareable(kv, keep) else 0)

    def _cut(self, sequence: Sequence, keep: int) -> None:
        """Leave a running sequence its first `keep` computed tokens; none where its memory cannot be cut."""
        kv = sequence.kv
        assert kv is not None
        if not (keep and self._memory.trim(kv.slot, keep)):
            self._memory.drop(kv.slot)
            keep = 0
        gone = kv.cells[keep:].copy()
        self.cells.unpin(gone)
        self.cells.release(gone)
        kv.length = keep

    def refused(self) -> bool:
        """llama.cpp found no place for the rows: free some. False when there is nothing to free."""
        if self.prefixes.evict_all():
            return True
        if len(self.running) > 1:
            self._swap_out(self.running[-1])
            return True
        return False

    def end(self, sequence: Sequence, *, spoiled: bool = False) -> None:
        """The sequence is finished, failed or cancelled; what it computed is retained. `spoiled`: that is no
        number; it is forgotten, and the KV cache cleared before the next step."""
        if sequence.state is State.WAITING:
            self.waiting.remove(sequence)
        elif sequence.state is State.SWAPPED:
            self.swapped.remove(sequence)
            sequence.saved = None
        elif sequence.state is State.RUNNING:
            self.running.remove(sequence)
            self.keep(sequence, 0)
            assert sequence.kv is not None
            if spoiled:
                self._cut(sequence, 0)
                self._spoiled = True
            self.prefixes.retain(sequence.kv)
            sequence.kv = None
        sequence.state = State.ENDED

    # --- rows

    def _rows(self, budget: int) -> list[Row]:
        return rows_of(self._turns.take(self.running), budget, self.cells.free, self._scored_rows)

    def _secure_decode(self) -> None:
        while sum(s.pending for s in self.running if s.decoding) > self.cells.free:
            self._free_some()

    # --- admission

    def _resume(self) -> None:
        while self.swapped and len(self.running) < self.parallel:
            # One more cell for each running sequence: what comes back should not leave at once.
            if not self.prefixes.fits(self.swapped[0].length + len(self.running)):
                return
            self._swap_in(self.swapped.popleft())

    def _begin_waiting(self) -> None:
        # Looking at each costs a comparison with every resident prefix: no more than could begin soon.
        if not self.waiting or len(self.running) >= self.parallel:
            return
        for sequence in islice(self.waiting.ordered(self.running), 2 * self.parallel):
            if self.swapped or len(self.running) >= self.parallel:
                return
            match = self._match(sequence)
            if match.growing:
                continue
            promised = sum(s.pending for s in self.running)
            new = max(sequence.length, match.cells) - (match.length if match.source else 0)
            if not self.prefixes.fits(new + promised + 1, match):
                return
            self.waiting.remove(sequence)
            self._begin(sequence, match)

    def _begin(self, sequence: Sequence, match: Match) -> None:
        source = match.source
        sequence.cached = match.length
        self.shared += source is not None and match.length > 0
        prefixes = self.prefixes
        # Taken first: making way may push it out of host memory.
        state = prefixes.saved.take(match.saved) if match.saved.shared else None
        prefixes.make_way(keep=source)
        if source is not None and source in prefixes.retained and prefixes.may_give(source, match.length):
            kv = prefixes.give(source, match.length)
        else:
            kv = Resident(prefixes.take_slot(keep=source), sequence.tokens, sequence.request.adapters)
            if source is not None and match.length:
                prefixes.share(source, kv, match.length)
                prefixes.make_way()  # of what else the source has: often only a template's start is shared
            elif match.saved.shared:
                sequence.cached = prefixes.bring_back(kv, match.saved, state)
                self._searches += 1
        sequence.settle(kv)
        self._insert(sequence)

    def _match(self, sequence: Sequence) -> Match:
        # The last prompt token is always computed, or all of them: their logits are wanted.
        prompt = sequence.tokens[: 0 if sequence.scoring else sequence.prompt_length - 1]
        adapters = sequence.request.adapters
        length, kv = self.prefixes.retained.longest(prompt, adapters, whole=not self._trimmable)
        if kv is not None and not self._shareable(kv, length):
            length, kv = self.prefixes.retained.longest(prompt, adapters, whole=True)
        best = Match(kv, length, False)
        if self._trimmable:
            best = among_running(best, prompt, adapters, self.running, self._shareable)
        return among_saved(best, prompt, adapters, self.prefixes.saved, most=self.cells.longest - 1)

    def _shareable(self, kv: Resident, length: int) -> bool:
        """Whether a sequence may go on from the first `length` tokens of `kv`."""
        if not self._trimmable:
            return length == kv.length
        # Where each slot has its own cache, what is shared was saved, and its length alone counts.
        return kv.shareable(length, self._sliding_window, self._searches if self._unified else None)

    def _insert(self, sequence: Sequence) -> None:
        """Keep `running` in the order of arrival, so that its last is the youngest."""
        at = len(self.running)
        while at and self.running[at - 1].request.arrived > sequence.request.arrived:
            at -= 1
        self.running.insert(at, sequence)

    # --- memory

    def _free_some(self) -> None:
        """Evict a retained prefix; without one, swap the youngest running sequence out."""
        if self.prefixes.evict():
            return
        if len(self.running) < 2:
            raise AssertionError("one sequence alone must fit into the context")
        self._swap_out(self.running[-1])

    def _swap_out(self, sequence: Sequence) -> None:
        kv = sequence.kv
        assert kv is not None
        sequence.saved = self._memory.save(kv.slot) if kv.length else None
        sequence.saved_length = kv.length
        sequence.kv = None
        sequence.state = State.SWAPPED
        self.running.remove(sequence)
        self.swapped.appendleft(sequence)  # victims are ever older: the oldest comes back first
        self.cells.unpin(kv.cells)
        self.prefixes.drop(kv)
        self.preemptions += 1

    def _start_over(self) -> None:
        """Clear the KV cache, for in some of its cells is what is no number. Prefixes that are retained are
        saved, answers swapped out; prompts, of which no logits were seen yet, are computed anew."""
        self.prefixes.evict_all()
        while self.running:
            sequence = self.running[-1]
            if not sequence.decoding:
                self._cut(sequence, 0)
            self._swap_out(sequence)
        self._memory.clear()
        self._spoiled = False

    def _swap_in(self, sequence: Sequence) -> None:
        kv = Resident(self.prefixes.take_slot(), sequence.tokens, sequence.request.adapters)
        self._searches += 1
        if sequence.saved is not None and self._memory.restore(kv.slot, sequence.saved):
            kv.extend(self.cells.allocate(sequence.saved_length))
        else:  # nothing was saved, or llama.cpp could not place it: compute it again
            self._memory.drop(kv.slot)
        sequence.saved = None
        sequence.settle(kv)
        self._insert(sequence)
