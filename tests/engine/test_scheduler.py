from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from llmrun.engine import prefix_cache
from llmrun.engine.request import Adapters, EngineRequest, Shift
from llmrun.engine.rows import Row
from llmrun.engine.saved_prefixes import SavedPrefixes
from llmrun.engine.scheduler import Scheduler
from llmrun.engine.sequence import Sequence, State
from llmrun.types import SamplingParams


class Cell:
    """A cell of its own, and the adapters that it was computed with (None where that is not known). `lost`:
    a layer with a sliding window has nothing of it any more."""

    def __init__(self, adapters: Adapters | None = None, lost: bool = False) -> None:
        self.adapters = adapters
        self.lost = lost


class RecordingMemory:
    """What the context would hold: per slot the cells of its tokens; `each`: how many it may have, where they
    are its own. What lies behind a sliding window is lost when a step looks for cells, and is not saved
    (`find_slot` and `state_write` of llama.cpp)."""

    def __init__(self, each: int | None = None, *, trimmable: bool = True, sliding_window: int = 0) -> None:
        self.each = each
        self.trimmable = trimmable
        self.sliding_window = sliding_window
        self.spoiled = False
        self.slots: dict[int, list[Cell]] = {}
        self.calls: list[tuple[object, ...]] = []
        self.restores = True

    def drop(self, slot: int) -> None:
        self.calls.append(("drop", slot))
        self.slots.pop(slot, None)

    def trim(self, slot: int, length: int) -> bool:
        self.calls.append(("trim", slot, length))
        if not self.trimmable and length < len(self.slots[slot]):
            return False
        del self.slots[slot][length:]
        return True

    def clear(self) -> None:
        self.calls.append(("clear",))
        assert not any(self.slots.values())
        self.spoiled = False

    def length(self, slot: int) -> int:
        return len(self.slots[slot])

    def share(self, source: int, target: int, length: int) -> None:
        self.calls.append(("share", source, target, length))
        assert not self.slots.get(target)
        self.slots[target] = self.slots[source][:length]
        assert len(self.slots[target]) == length
        if self.each:
            behind = self.behind(len(self.slots[source]))
            self.slots[target] = [
                Cell(cell.adapters, cell.lost or at < behind) for at, cell in enumerate(self.slots[target])
            ]

    def save(self, slot: int) -> bytes:
        self.calls.append(("save", slot))
        return len(self.slots[slot]).to_bytes(4, "little")

    def restore(self, slot: int, state: bytes) -> bool:
        self.calls.append(("restore", slot))
        assert not self.slots.get(slot)
        self.look_for_cells()
        if self.restores:
            total = int.from_bytes(state, "little")
            self.slots[slot] = [Cell(lost=at < self.behind(total)) for at in range(total)]
        return self.restores

    def behind(self, total: int) -> int:
        """How many of so many tokens the next one would not look back to."""
        return max(0, total + 1 - self.sliding_window) if self.sliding_window else 0

    def look_for_cells(self) -> None:
        """As each step and restore does: what one alone holds behind its window may be given to another."""
        holders = Counter(id(cell) for held in self.slots.values() for cell in held)
        for held in self.slots.values():
            for cell in held[: self.behind(len(held))]:
                cell.lost |= holders[id(cell)] == 1

    def compute(self, rows: list[Row]) -> None:
        assert not self.spoiled
        self.look_for_cells()
        for sequence, length, _ in rows:
            assert sequence.kv is not None
            held = self.slots.setdefault(sequence.kv.slot, [])
            assert len(held) == sequence.computed
            assert not any(cell.lost for cell in held[self.behind(len(held)) :])
            held.extend(Cell(sequence.request.adapters) for _ in range(length + len(sequence.draft)))
            assert self.each is None or len(held) <= self.each

    def cells(self) -> int:
        return len({id(cell) for held in self.slots.values() for cell in held})


class World:
    """A scheduler with its memory, and the engine's part of the loop without a model. `cells` are those that
    all slots share or, where not `unified`, those of each."""

    def __init__(
        self,
        cells: int = 64,
        parallel: int = 4,
        slots: int = 8,
        trimmable: bool = True,
        saved: int = 0,
        scored_rows: int = 1,
        unified: bool = True,
        kept: int | None = None,
        sliding_window: int = 0,
    ) -> None:
        self.memory = RecordingMemory(
            None if unified else cells, trimmable=trimmable, sliding_window=sliding_window
        )
        self.scheduler = Scheduler(
            self.memory,
            cells=cells if unified else cells * slots,
            slots=slots,
            parallel=parallel,
            unified=unified,
            trimmable=trimmable,
            sliding_window=sliding_window,
            scored_rows=scored_rows,
            saved=SavedPrefixes(saved, least=8, whole=bool(sliding_window) or not trimmable),
            most_retained=kept,
        )
        self.arrivals = 0
        self.forced: Callable[[], int] = lambda: 0
        self.drafted: Callable[[], int] = lambda: 0

    def add(
        self,
        prompt: list[int],
        max_tokens: int = 4,
        n: int = 1,
        adapters: Adapters = (),
        score_from: int | None = None,
        shift: Shift | None = None,
    ) -> list[Sequence]:
        self.arrivals += 1
        request = EngineRequest(
            id=str(self.arrivals),
            prompt=tuple(prompt),
            params=SamplingParams(),
            seed=0,
            arrived=float(self.arrivals),
            max_tokens=max_tokens,
            n=n,
            adapters=adapters,
            score_from=score_from,
            shift=shift,
        )
        sequences = [Sequence(request, i) for i in range(n)]
        for sequence in sequences:
            self.scheduler.add(sequence)
        return sequences

    def plan(self, budget: int) -> list[Row]:
        self.scheduler.admit()
        return self.scheduler.plan(budget)

    def step(self, budget: int = 16) -> list[Row]:
        rows = self.plan(budget)
        assert len({row.sequence.request.adapters for row in rows}) <= 1
        self.draft(rows)
        self.memory.compute(rows)
        self.scheduler.computed(rows)
        for sequence, _, output in rows:
            if output:
                self.grow(sequence)
        self.check()
        return rows

    def fail(self, budget: int = 16) -> None:
        """A step that ends before all of it is computed."""
        rows = self.plan(budget)
        self.memory.compute(rows)
        self.scheduler.undo(rows)
        self.check()

    def spoil(self, sequence: Sequence) -> None:
        """What was computed of a sequence turns out to be no number."""
        self.memory.spoiled = True
        self.scheduler.end(sequence, spoiled=True)
        self.check()

    def draft(self, rows: list[Row]) -> None:
        """Guesses behind the rows that are sampled from, as many as there is room for."""
        wanted = {row.sequence: self.drafted() for row in rows if row.output and row.sequence.decoding}
        room = self.scheduler.prefixes.spare(sum(row.length for row in rows) + sum(wanted.values()))
        room -= sum(row.length for row in rows)
        for sequence, count in wanted.items():
            left = self.scheduler.cells.longest - sequence.length
            sequence.draft = (0,) * min(count, room, max(0, left))
            room -= len(sequence.draft)

    def grow(self, sequence: Sequence) -> None:
        """Guesses that came true, a sampled token, and those that a grammar forces behind it."""
        accepted = min(len(sequence.draft), self.drafted())
        for count in range(accepted + 1 + self.forced()):
            sequence.append(1000 + sequence.length)
            if sequence.finish_reason(False, self.scheduler.cells.longest):
                self.scheduler.keep(sequence, min(count, accepted))
                self.scheduler.end(sequence)
                return
            if sequence.full:
                self.scheduler.keep(sequence, min(count, accepted))
                self.scheduler.shift(sequence)
                return
        self.scheduler.keep(sequence, accepted)

    def run(self, budget: int = 16, most: int = 2000) -> int:
        for steps in range(most):
            if self.scheduler.idle:
                return steps
            assert self.step(budget), "a step with work to do did nothing"
        raise AssertionError("work does not end")

    def check(self) -> None:
        cells = self.scheduler.cells
        assert cells.free + cells.retained + cells.running == cells.total
        assert self.memory.cells() == cells.total - cells.free
        residents = [*self.scheduler.prefixes.retained, *(s.kv for s in self.scheduler.running)]
        assert len({kv.slot for kv in residents if kv}) == len(residents)
        for kv in residents:
            assert kv
            assert {cell.adapters for cell in self.memory.slots.get(kv.slot, [])} <= {kv.adapters, None}


def test_plan_decode_rows_come_before_a_prefill_chunk() -> None:
    world = World()
    (answering,) = world.add([1, 2, 3], max_tokens=20)
    world.step()
    (arriving,) = world.add(list(range(50, 80)))
    rows = world.step(budget=9)
    assert rows == [Row(answering, 1, True), Row(arriving, 8, False)]


def test_keep_cuts_away_what_was_guessed_wrong() -> None:
    world = World(cells=64)
    (answering,) = world.add([1, 2, 3], max_tokens=50)
    world.step()
    guesses = iter([5, 2])  # five are made, two of them come true
    world.drafted = lambda: next(guesses)
    world.step()
    assert answering.computed == 3 + 1 + 2
    assert answering.generated == 1 + 2 + 1
    assert answering.kv
    assert world.memory.calls[-1] == ("trim", answering.kv.slot, 6)
    assert world.scheduler.cells.free == 64 - 6


def test_end_with_guesses_not_judged_keeps_none_of_them() -> None:
    world = World(cells=64)
    (answering,) = world.add([1, 2, 3], max_tokens=50)
    world.step()
    rows = world.plan(16)
    answering.draft = (7, 8)
    world.memory.compute(rows)
    world.scheduler.computed(rows)
    world.scheduler.end(answering)
    world.check()
    assert world.scheduler.cells.retained == 4


def test_spare_gives_up_retained_prefixes_and_no_running_sequence() -> None:
    world = World(cells=32)
    world.add(list(range(20)), max_tokens=1)
    world.run()
    world.add([50, 51], max_tokens=9)
    world.step()
    assert world.scheduler.cells.retained == 20
    assert world.scheduler.prefixes.spare(10) == 10
    assert world.scheduler.cells.retained == 20
    assert world.scheduler.prefixes.spare(99) == 30
    assert (world.scheduler.cells.retained, world.scheduler.cells.running) == (0, 2)


def test_plan_budget_below_the_decode_rows_leaves_no_answer_out() -> None:
    world = World()
    world.add([1, 2], max_tokens=9, n=3)
    world.step()
    assert [row.length for row in world.step(budget=1)] == [1, 1, 1]


def test_plan_forced_tokens_are_computed_with_the_sampled_one_before_any_prefill() -> None:
    world = World()
    world.forced = lambda: 4
    (answering,) = world.add([1, 2, 3], max_tokens=30)
    world.step()
    (arriving,) = world.add(list(range(50, 80)))
    assert world.step(budget=9) == [Row(answering, 5, True), Row(arriving, 4, False)]


def test_plan_more_forced_tokens_than_the_budget_leave_every_answer_its_row() -> None:
    world = World()
    world.forced = lambda: 6
    first, second = world.add([1, 2, 3], max_tokens=20, n=2)
    world.step()
    assert [row[1:] for row in world.step(budget=5) if row.sequence in (first, second)] == [
        (4, False),
        (1, False),
    ]
    assert {row.sequence for row in world.step(budget=5)} == {first, second}
    world.run(budget=5)
    assert (first.generated, second.generated) == (20, 20)


def test_plan_forced_tokens_past_the_free_cells_swap_the_youngest() -> None:
    world = World(cells=48, parallel=2)
    world.forced = lambda: 9
    old, young = world.add(list(range(10)), max_tokens=30), world.add(list(range(100, 110)), max_tokens=30)
    world.run(budget=32)
    assert world.scheduler.preemptions
    assert [s.generated for s in old + young] == [30, 30]


def test_plan_equal_prompts_are_computed_once() -> None:
    world = World(cells=256, parallel=4)
    prompt = list(range(40))
    for _ in range(4):
        world.add(prompt)
    first = world.step(budget=64)
    assert [row.length for row in first] == [40]
    second = world.step(budget=64)
    assert sorted(row.length for row in second) == [1, 1, 1, 1]
    assert sum(call[0] == "share" for call in world.memory.calls) == 3


def test_plan_source_of_a_shared_prefix_cancelled_lets_the_next_compute_it() -> None:
    world = World(cells=256)
    prompt = list(range(60))
    (first,), (second,) = world.add(prompt), world.add(prompt)
    world.step(budget=16)
    assert second.state is State.WAITING
    world.scheduler.end(first)
    world.run()
    assert second.cached == 16


def test_plan_next_turn_of_a_conversation_computes_only_its_new_tokens() -> None:
    world = World(cells=128)
    (turn,) = world.add(list(range(30)), max_tokens=4)
    world.run(budget=64)
    history = turn.tokens[:-1].tolist()
    (following,) = world.add([*history, 7, 8, 9])
    assert [row.length for row in world.step(budget=64)] == [3]
    assert following.cached == len(history)
    assert not any(call[0] == "share" for call in world.memory.calls)


def test_plan_whole_prompt_retained_computes_its_last_token_again() -> None:
    world = World(cells=128)
    prompt = list(range(30))
    world.add(prompt)
    world.run()
    (again,) = world.add(prompt)
    assert [row.length for row in world.step()] == [1]
    assert again.cached == 29


def test_plan_full_cache_evicts_the_least_recently_used_prefix_first() -> None:
    world = World(cells=64, parallel=1)
    for start in (0, 100, 200):
        world.add(list(range(start, start + 14)), max_tokens=2)
        world.run()
    assert len(world.scheduler.prefixes.retained) == 3
    world.add(list(range(300, 330)), max_tokens=2)
    world.run()
    assert [kv.tokens[0] for kv in world.scheduler.prefixes.retained] == [100, 200, 300]


def three_ended(world: World) -> list[int]:
    """The first tokens of the prefixes that are retained after three of 15 cells each."""
    for start in (0, 100, 200):
        world.add(list(range(start, start + 14)), max_tokens=2)
        world.run()
        world.check()
    return [int(kv.tokens[0]) for kv in world.scheduler.prefixes.retained]


@pytest.mark.parametrize(("kept", "staying"), [(None, [0, 100, 200]), (30, [100, 200]), (1, [200])])
def test_end_with_more_retained_than_may_be_kept_saves_all_but_the_newest(
    kept: int | None, staying: list[int]
) -> None:
    world = World(cells=64, saved=1000, kept=kept)
    assert three_ended(world) == staying
    (again,) = world.add([*range(14), 77])
    world.step(budget=64)
    assert again.cached == 14


@pytest.mark.parametrize(
    ("prompt", "cached"), [([*range(14), 77], 14), ([0, 1, 73, 74], 2), ([70, 71, 72, 73], 0)]
)
def test_begin_with_more_retained_than_may_be_kept_saves_what_it_does_not_begin_with(
    prompt: list[int], cached: int
) -> None:
    world = World(cells=64, saved=1000, kept=1)
    world.add(list(range(14)), max_tokens=4)
    world.run()
    (sequence,) = world.add(prompt)
    world.step(budget=64)
    world.check()
    assert not list(world.scheduler.prefixes.retained)
    assert world.memory.cells() == sequence.computed
    assert sequence.cached == cached


def test_begin_brings_back_a_prefix_that_making_way_pushes_out_of_host_memory() -> None:
    state = 20 * 8  # bytes, by what `RecordingMemory` saves of some 20 tokens
    world = World(cells=64, saved=state * 3 // 2, kept=1)
    cached = []
    for turn in range(6):
        start = 100 * (turn % 2)
        (sequence,) = world.add([*range(start, start + 20), 900 + turn], max_tokens=2)
        world.run()
        world.check()
        cached.append(sequence.cached)
    assert cached == [0, 0, 20, 20, 20, 20]


def test_prefix_that_host_memory_has_no_room_for_stays_where_it_is() -> None:
    world = World(cells=128, saved=1, kept=1)
    for start in (0, 100):
        world.add(list(range(start, start + 20)), max_tokens=2)
        world.run()
        world.check()
    (again,) = world.add([*range(20), 77])
    world.step(budget=64)
    assert again.cached == 20


def test_end_without_host_memory_for_prefixes_keeps_all() -> None:
    assert three_ended(World(cells=64, saved=0, kept=1)) == [0, 100, 200]


def after_a_burst(kept: int | None = 100, saved: int = 10_000, shared: int = 0) -> World:
    """A world in which nothing runs any more, and two short prefixes were left among what is free."""
    world = World(cells=1000, saved=saved, kept=kept)
    for start in (1000, 2000, 3000, 4000):
        world.add([*range(shared), *range(start, start + (200 if start < 3000 else 20))], max_tokens=2)
    world.run(budget=512)
    return world


def test_gather_after_a_burst_moves_what_is_retained_and_then_has_nothing_to_do() -> None:
    world = after_a_burst()
    kept = list(world.scheduler.prefixes.retained)
    world.memory.calls.clear()
    assert world.scheduler.prefixes.gather()
    slots = [kv.slot for kv in kept]
    assert world.memory.calls == [(what, slot) for what in ("save", "drop", "restore") for slot in slots]
    assert list(world.scheduler.prefixes.retained) == kept != []
    world.check()
    assert not world.scheduler.prefixes.gather()


def test_gather_prefix_that_cannot_be_placed_again_goes_to_host_memory() -> None:
    world = after_a_burst()
    world.memory.restores = False
    assert world.scheduler.prefixes.gather()
    assert not list(world.scheduler.prefixes.retained)
    assert world.scheduler.prefixes.saved.holds(np.arange(4000, 4020, dtype=np.int32))
    world.check()


@pytest.mark.parametrize(
    ("kept", "shared"),
    [
        pytest.param(200, 30, id="shares cells"),
        pytest.param(20, 0, id="too much"),
        pytest.param(None, 0, id="on a graphics card"),
    ],
)
def test_gather_what_is_not_to_be_moved_touches_nothing(kept: int | None, shared: int) -> None:
    world = after_a_burst(kept=kept, shared=shared)
    cells, prefixes = world.scheduler.cells, world.scheduler.prefixes
    while prefixes.most_retained is None and cells.peak - cells.used < 256:
        prefixes.evict()
    assert list(prefixes.retained)
    assert cells.peak - cells.used >= 256
    world.memory.calls.clear()
    assert not prefixes.gather()
    assert not world.memory.calls


def test_gather_while_something_runs_or_nothing_was_spread_touches_nothing() -> None:
    world = after_a_burst()
    world.add(list(range(50)), max_tokens=5)
    world.step(budget=64)
    world.memory.calls.clear()
    assert not world.scheduler.prefixes.gather()
    world.run()
    assert world.scheduler.prefixes.gather()
    assert not world.scheduler.prefixes.gather()


def test_wants_more_while_anything_but_one_token_an_answer_is_to_be_computed() -> None:
    world = World()
    world.add(list(range(17)), max_tokens=3)
    world.scheduler.admit()
    assert world.scheduler.wants_more
    world.step(budget=16)
    assert world.scheduler.wants_more  # one token of the prompt is left
    world.step(budget=16)
    assert not world.scheduler.wants_more
    world.step(budget=1)
    world.add([1, 2], max_tokens=1)
    world.scheduler.admit()
    assert world.scheduler.wants_more


def test_plan_running_answers_outgrow_the_cells_swaps_the_youngest_and_all_finish() -> None:
    world = World(cells=64, parallel=3)
    old, young = world.add(list(range(20)), max_tokens=30), world.add(list(range(100, 120)), max_tokens=30)
    order: list[Sequence] = []
    while not world.scheduler.idle:
        order += [row.sequence for row in world.step() if row.sequence.state is State.ENDED]
    assert order == old + young
    assert world.scheduler.preemptions >= 1
    assert [s.generated for s in order] == [30, 30]


def test_plan_while_one_is_swapped_out_nothing_new_begins() -> None:
    world = World(cells=64, parallel=4)
    world.add(list(range(24)), max_tokens=30)
    world.add(list(range(100, 124)), max_tokens=30)
    while not world.scheduler.swapped:
        world.step(budget=64)
    (late,) = world.add([7], max_tokens=1)
    world.step()
    assert late.state is State.WAITING
    world.run()
    assert late.generated == 1


def test_plan_restore_fails_computes_the_sequence_again() -> None:
    world = World(cells=64, parallel=3)
    world.memory.restores = False
    sequences = world.add(list(range(20)), max_tokens=30) + world.add(list(range(100, 120)), max_tokens=30)
    world.run()
    assert [s.generated for s in sequences] == [30, 30]


def test_plan_prefix_in_the_way_of_its_own_user_is_cut() -> None:
    world = World(cells=64, parallel=1)
    world.add(list(range(50)), max_tokens=2)
    world.run(budget=64)
    (other,) = world.add([*range(20), *range(900, 935)], max_tokens=2)
    world.run(budget=64)
    assert other.cached == 20
    assert [call[2] for call in world.memory.calls if call[0] == "trim"] == [20]


def test_plan_memory_that_cannot_be_trimmed_takes_only_whole_prefixes() -> None:
    world = World(cells=128, trimmable=False)
    (first,) = world.add(list(range(30)))
    world.run(budget=64)
    (branch,) = world.add([*range(20), 500])
    world.run(budget=64)
    (following,) = world.add([*first.tokens[:-1].tolist(), 501])
    world.run(budget=64)
    assert (branch.cached, following.cached) == (0, first.length - 1)


@pytest.mark.parametrize("trimmable", [True, False])
def test_shift_leaves_out_the_oldest_and_computes_the_rest_anew(trimmable: bool) -> None:
    world = World(cells=64, trimmable=trimmable)
    (answer,) = world.add(list(range(20)), max_tokens=30, shift=Shift(window=32, keep=8))
    while not answer.left_out:
        world.step(budget=64)
    assert answer.tokens.tolist() == [*range(8), *range(1020, 1032)]
    assert answer.computed == (8 if trimmable else 0)
    assert [row.length for row in world.step(budget=64)] == [12 if trimmable else 20]
    world.run()
    assert (answer.generated, answer.left_out > 12) == (30, True)


@pytest.mark.parametrize(("ended", "cached"), [([40], 0), ([40, 20], 20)])
def test_plan_beginning_of_what_outgrew_its_window_is_computed_but_for_what_is_had_whole(
    ended: list[int], cached: int
) -> None:
    world = World(cells=200, sliding_window=10)
    for length in ended:
        world.add(list(range(length)), max_tokens=1)
        world.run(budget=64)
    world.add([900], max_tokens=1)
    world.run()
    (branch,) = world.add([*range(30), 99], max_tokens=1)
    world.run(budget=64)
    assert branch.cached == cached


def test_failed_step_behind_a_window_leaves_only_the_whole_to_go_on_from() -> None:
    world = World(cells=200, sliding_window=10)
    world.add(list(range(5)), max_tokens=40)
    (long,) = world.add(list(range(100, 130)), max_tokens=40)
    world.step(budget=64)
    assert long.kv
    assert world.scheduler._shareable(long.kv, 25)
    world.fail()
    assert not world.scheduler._shareable(long.kv, 25)
    assert world.scheduler._shareable(long.kv, 30)


def test_restored_sequence_takes_what_lay_behind_the_windows_of_others() -> None:
    world = World(cells=200, sliding_window=10, parallel=2)
    world.add(list(range(5)), max_tokens=40)
    (long,) = world.add(list(range(100, 130)), max_tokens=40)
    world.step(budget=64)
    assert long.kv
    assert world.scheduler._shareable(long.kv, 25)
    world.scheduler._swap_out(world.scheduler.running[0])
    world.scheduler.admit()
    assert not world.scheduler.swapped
    assert not world.scheduler._shareable(long.kv, 25)


def test_prefix_that_is_brought_back_takes_what_lay_behind_the_windows_of_others() -> None:
    world = World(cells=200, sliding_window=10, saved=1000)
    world.add(list(range(50, 80)), max_tokens=1)
    world.run(budget=64)
    world.scheduler.prefixes.evict()
    (long,) = world.add(list(range(100, 130)), max_tokens=40)
    world.step(budget=64)
    assert long.kv
    assert world.scheduler._shareable(long.kv, 25)
    (again,) = world.add([*range(50, 80), 7])
    world.scheduler.admit()
    assert again.cached == 30
    assert not world.scheduler._shareable(long.kv, 25)


def test_undo_where_the_memory_cannot_be_cut_computes_all_anew() -> None:
    world = World(trimmable=False)
    (answer,) = world.add(list(range(20)))
    world.step(budget=8)
    world.fail(budget=8)
    assert answer.computed == 0
    world.run()
    assert answer.generated == 4


def test_undo_keeps_what_was_computed_before_the_step() -> None:
    world = World()
    (answer,) = world.add(list(range(20)))
    world.step(budget=8)
    world.fail(budget=8)
    assert answer.computed == 8


def test_end_of_what_is_spoiled_clears_the_cache_before_anything_is_computed() -> None:
    world = World(cells=200, saved=1000)
    world.add(list(range(50, 70)), max_tokens=1)
    world.run(budget=64)
    (bad,) = world.add(list(range(100, 120)), max_tokens=40)
    (answering,) = world.add(list(range(200, 220)), max_tokens=40)
    world.step(budget=64)
    (arriving,) = world.add(list(range(300, 320)), max_tokens=40)
    world.step(budget=8)
    world.spoil(bad)
    assert ("clear",) not in world.memory.calls
    world.scheduler.admit()
    assert ("clear",) in world.memory.calls
    assert answering.computed == answering.length - 1
    assert arriving.computed == 0
    (same,) = world.add([*range(100, 120), 7], max_tokens=1)
    (kept,) = world.add([*range(50, 70), 7], max_tokens=1)
    world.run(budget=64)
    assert (same.cached, kept.cached) == (0, 20)
    assert [answering.generated, arriving.generated] == [40, 40]


def test_shift_behind_the_window_computes_all_anew() -> None:
    world = World(cells=64, sliding_window=10)
    (answer,) = world.add(list(range(20)), max_tokens=30, shift=Shift(window=32, keep=8))
    while not answer.left_out:
        world.step(budget=64)
    assert answer.computed == 0
    world.run()
    assert answer.generated == 30


def evicted(world: World) -> None:
    """Fill the cells with other prompts, one at a time, until nothing else is retained."""
    for start in (500, 600):
        world.add(list(range(start, start + 60)), max_tokens=1)
        world.run(budget=64)


def test_plan_evicted_prefix_is_saved_and_brought_back() -> None:
    world = World(saved=1000)
    world.add(list(range(30)), max_tokens=2)
    world.run(budget=64)
    evicted(world)
    (again,) = world.add([*range(30), 77])
    assert [row.length for row in world.step(budget=64)] == [1]
    assert again.cached == 30
    world.run()


def test_plan_saved_prefix_of_which_a_part_matches_is_cut() -> None:
    world = World(saved=1000)
    world.add(list(range(30)), max_tokens=2)
    world.run(budget=64)
    evicted(world)
    (other,) = world.add([*range(20), 900])
    assert [row.length for row in world.step(budget=64)] == [1]
    assert other.cached == 20
    assert world.memory.calls[-1][::2] == ("trim", 20)


def test_plan_saved_prefix_hardly_longer_than_a_resident_one_stays_away() -> None:
    world = World(saved=1000)
    world.add(list(range(30)), max_tokens=2)
    world.run(budget=64)
    evicted(world)
    world.add([*range(25), 700], max_tokens=1)
    world.run(budget=64)
    restores = [call for call in world.memory.calls if call[0] == "restore"]
    (third,) = world.add([*range(30), 900])
    world.step(budget=64)
    assert third.cached == 25
    assert [call for call in world.memory.calls if call[0] == "restore"] == restores


def test_plan_saved_prefix_that_llama_cannot_place_is_computed() -> None:
    world = World(saved=1000)
    world.add(list(range(30)), max_tokens=2)
    world.run(budget=64)
    evicted(world)
    world.memory.restores = False
    (again,) = world.add([*range(30), 77])
    world.run(budget=64)
    assert (again.cached, again.generated) == (0, 4)


def test_plan_saved_prefix_of_another_length_than_it_was_saved_under_is_a_miss() -> None:
    world = World(saved=1000)
    world.add(list(range(30)), max_tokens=2)
    world.run(budget=64)
    evicted(world)
    world.memory.length = lambda slot: len(world.memory.slots[slot]) + 5  # type: ignore[method-assign]
    (again,) = world.add([*range(30), 77])
    world.run(budget=64)
    assert (again.cached, again.generated) == (0, 4)


def test_plan_saved_whole_prefix_serves_what_cannot_be_cut() -> None:
    world = World(trimmable=False, saved=1000)
    (first,) = world.add(list(range(30)), max_tokens=2)
    world.run(budget=64)
    evicted(world)
    (branch,) = world.add([*range(20), 900], max_tokens=1)
    (following,) = world.add([*first.tokens[:-1].tolist(), 901], max_tokens=1)
    world.run(budget=64)
    assert (branch.cached, following.cached) == (0, 31)


def test_refused_with_prefixes_retained_gives_them_up_then_swaps_then_says_no() -> None:
    world = World(cells=128)
    world.add(list(range(10)), max_tokens=1)
    world.run()
    world.add(list(range(100, 110)), max_tokens=9)
    world.add(list(range(200, 210)), max_tokens=9)
    world.step(budget=64)
    assert world.scheduler.refused()
    assert not world.scheduler.prefixes.retained
    assert world.scheduler.refused()
    assert len(world.scheduler.swapped) == 1
    assert not world.scheduler.refused()


@pytest.mark.parametrize("windowed", [False, True])
@pytest.mark.parametrize(("trimmable", "unified"), [(True, True), (False, True), (True, False)])
@settings(max_examples=100)
@given(data=st.data())
def test_scheduler_under_random_load_loses_nothing_and_always_ends(
    trimmable: bool, unified: bool, windowed: bool, data: st.DataObject
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prefix_cache, "_SPREAD", 4)
        under_random_load(trimmable, unified, windowed, data)


def under_random_load(trimmable: bool, unified: bool, windowed: bool, data: st.DataObject) -> None:
    cells = data.draw(st.integers(24, 96))
    parallel = data.draw(st.integers(1, 5))
    slots = parallel + data.draw(st.integers(0, 6))
    saved = data.draw(st.integers(0, 40))
    kept = data.draw(st.none() | st.integers(0, 40)) if trimmable and not windowed else None
    sliding_window = data.draw(st.integers(1, 30)) if windowed else 0
    world = World(
        *(cells, parallel, slots, trimmable, saved),
        unified=unified,
        kept=kept,
        sliding_window=sliding_window,
    )
    world.memory.restores = data.draw(st.booleans())
    most_forced, chance = data.draw(st.integers(0, 20)), random.Random(data.draw(st.integers(0, 99)))
    world.forced = lambda: chance.randint(0, most_forced)
    if trimmable:
        world.drafted = lambda: chance.randint(0, most_forced)
    prefix, spoiled = list(range(12)), False
    alive: list[Sequence] = []
    for _ in range(data.draw(st.integers(1, 40))):
        action = data.draw(
            st.sampled_from(["add", "step", "step", "step", "fail", "spoil", "cancel", "tidy"])
        )
        if action == "tidy" and world.scheduler.idle:
            while world.scheduler.prefixes.tidy_one():
                world.check()
        elif action == "add":
            common = data.draw(st.integers(0, 12))
            length = data.draw(st.integers(1, cells - 1 - common))
            own = [data.draw(st.integers(0, 3))] * length
            full = data.draw(st.none() | st.integers(common + length + 1, cells))
            keep = data.draw(st.integers(0, cells))
            alive += world.add(
                prefix[:common] + own,
                data.draw(st.integers(1, 30)),
                data.draw(st.integers(1, 3)),
                data.draw(st.sampled_from([(0.0,), (0.0,), (1.0,), (0.5,)])),
                shift=Shift(full, keep) if full else None,
            )
        elif action == "step":
            world.step(data.draw(st.integers(1, 32)))
        elif action == "fail":
            world.fail(data.draw(st.integers(1, 32)))
        elif action == "spoil":
            if running := [s for s in world.scheduler.running if s.generated]:
                world.spoil(data.draw(st.sampled_from(running)))
                spoiled = True
        elif alive:
            victim = alive.pop(data.draw(st.integers(0, len(alive) - 1)))
            if victim.state is not State.ENDED:
                world.scheduler.end(victim)
                world.check()
    world.run()
    assert all(sequence.state is State.ENDED for sequence in alive)
    assert all(sequence.generated or sequence.length == cells for sequence in alive)
    assert world.scheduler.cells.running == 0
    assert unified or spoiled or not world.scheduler.preemptions


def test_plan_prefix_shared_where_each_slot_has_its_cells_is_copied() -> None:
    world = World(cells=32, parallel=2, slots=2, unified=False)
    world.add(list(range(20)), max_tokens=9)
    world.step(budget=64)
    (second,) = world.add([*range(20), 99], max_tokens=9)
    world.step(budget=64)
    assert second.cached == 20
    assert world.scheduler.cells.running == 20 + 1 + 20 + 1
    world.run()


def test_plan_answers_fill_slots_that_have_their_own_cells_and_none_is_swapped() -> None:
    world = World(cells=32, parallel=3, slots=3, unified=False)
    answers = [world.add([at] * 20, max_tokens=99)[0] for at in range(5)]
    world.run()
    assert [answer.length for answer in answers] == [32] * 5
    assert world.scheduler.preemptions == 0


def test_plan_prompt_to_be_scored_is_computed_from_its_start_few_rows_a_step() -> None:
    world = World(scored_rows=6)
    world.add(list(range(20)), max_tokens=1)
    world.run()
    (scored,) = world.add(list(range(20)), max_tokens=1, score_from=0)
    (free,) = world.add(list(range(20, 26)), max_tokens=1)
    first = world.step(budget=16)
    assert scored.cached == 0
    assert [(row.sequence, row.length) for row in first] == [(scored, 6), (free, 6)]


def test_plan_prompts_to_be_scored_share_the_rows_of_a_step_oldest_first() -> None:
    world = World(scored_rows=8)
    older, younger = (world.add(list(range(at, at + 12)), score_from=0)[0] for at in (0, 100))
    steps = []
    for _ in range(3):
        rows = world.plan(64)
        steps.append([(row.sequence, row.length) for row in rows])
        world.memory.compute(rows)
        world.scheduler.computed(rows)
        for sequence, _, output in rows:
            sequence.scored = min(sequence.computed + 1, sequence.prompt_length)
            if output:
                world.scheduler.end(sequence)
    assert steps == [[(older, 8)], [(older, 4), (younger, 4)], [(younger, 8)]]


def test_plan_short_prompt_behind_a_long_one_is_computed_at_once() -> None:
    world = World(cells=128)
    (long,) = world.add(list(range(60)))
    (short,) = world.add(list(range(100, 104)))
    assert [(row.sequence, row.length) for row in world.step(budget=16)] == [(long, 12), (short, 4)]
