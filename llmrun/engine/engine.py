"""The step loop: take in requests, plan, decode one batch, sample, say what happened.

Threads: `run` is the engine thread's whole life. `submit`, `cancel` and `stop` may be called from any
other thread; they only put a note into the inbox. Events leave through `emit`, one list per step,
called on the engine thread, so it must be quick. Every request ends in one Finished or Failed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from llmrun.engine.answering import stopped, take
from llmrun.engine.budget import PrefillBudget
from llmrun.engine.choosing import Choosers
from llmrun.engine.counters import Counters
from llmrun.engine.drafting import Drafter, Drafting
from llmrun.engine.filling import fill
from llmrun.engine.finite import NotFinite, check_finite
from llmrun.engine.inbox import Inbox, Note
from llmrun.engine.job import Job
from llmrun.engine.request import EngineRequest
from llmrun.engine.rows import Prefill, Row, is_burst, longest_prompt, prefill_of, slot_of
from llmrun.engine.saved_prefixes import SavedPrefixes
from llmrun.engine.scheduler import Scheduler
from llmrun.engine.scoring import rows_at_once, score
from llmrun.engine.sequence import Sequence, State
from llmrun.engine.step_cost import StepCost
from llmrun.engine.thread_choice import ThreadChoice
from llmrun.errors import CANCELLED, INTERNAL, SHUTTING_DOWN, LlmrunError
from llmrun.llama import Batch, Context, DecodeStatus
from llmrun.types import Event, Failed, Finished, FinishReason, Limit, Pace, Started

Emit = Callable[[list[tuple[str, Event]]], None]

# Rows from which on it is worth aborting a running decode when their request is cancelled.
_LONG_PREFILL = 64
# Rows up to which steps with guesses are made, and their cost is learnt.
_MOST_DRAFTED = 128


class Engine:
    """Decodes all requests of one context together; `clock` gives seconds.

    saved     where prefixes go that leave the KV cache, closed when `run` ends
    most_retained  cells that they may keep in it; None: all
    drafters  who guesses ahead, the cheapest first
    threads   how many compute decoding steps; None: as the context's settings say
    known     seconds of steps by rows, measured before
    prefill   how many prompt tokens a step has
    """

    def __init__(
        self,
        context: Context,
        *,
        batch: int,
        parallel: int,
        emit: Emit,
        clock: Callable[[], float],
        saved: SavedPrefixes | None = None,
        most_retained: int | None = None,
        drafters: tuple[Drafter, ...] = (),
        threads: ThreadChoice | None = None,
        known: Mapping[int, float] | None = None,
        prefill: PrefillBudget | None = None,
    ) -> None:
        self._context = context
        self._batch = Batch(max(batch, parallel))
        self.budget = prefill or PrefillBudget(batch)
        self.threads = threads
        self.cost = StepCost(max(_MOST_DRAFTED, parallel), known)
        # Rejected guesses are cut away again: a memory that cannot be cut cannot have any.
        self._drafting = Drafting(drafters if context.model.trimmable else (), self.cost, context.ctx)
        self._emit = emit
        self._clock = clock
        self._inbox = Inbox()
        self._jobs: dict[str, Job] = {}
        self._deadlines: dict[str, float] = {}
        self._choosers = Choosers(context)
        self._events: list[tuple[str, Event]] = []
        self._long_prefills: frozenset[str] = frozenset()
        self._stopping = False
        self.ctx = context.ctx
        self.counters = Counters()
        self.scheduler = Scheduler(
            context,
            cells=context.cells,
            slots=context.slots,
            parallel=parallel,
            unified=context.unified,
            trimmable=context.model.trimmable,
            sliding_window=context.model.sliding_window,
            scored_rows=rows_at_once(context.model.vocab.size),
            saved=saved,
            most_retained=most_retained,
        )

    @property
    def decode_threads(self) -> int:
        """That compute a decoding step, while no other number is tried."""
        return self._context.threads if self.threads is None else self.threads.threads

    # --- from other threads

    def submit(self, request: EngineRequest) -> None:
        """Queue a request whose prompt is shorter than `ctx`."""
        self._inbox.put(request)

    def cancel(self, request_id: str) -> None:
        """End a request at once, wherever it is; an id that has ended already is ignored."""
        self._inbox.put(request_id)
        if request_id in self._long_prefills:
            self._context.abort.set()

    def stop(self) -> None:
        """End `run`; requests that are still open fail."""
        self._context.abort.set()
        self._inbox.put(None)

    # --- the engine thread

    def run(self) -> None:
        """Work until `stop`. An exception here means the engine is dead; all open requests fail."""
        failure = LlmrunError(SHUTTING_DOWN, "the model is being unloaded")
        try:
            while not self._stopping:
                self._take_in()
                self._end_overdue()
                self._step()
                self._send()
        except BaseException as error:
            failure = LlmrunError(INTERNAL, f"the engine failed: {error}")
            raise
        finally:
            for job in list(self._jobs.values()):
                self._fail(job, failure)
            self._send()
            self._context.abort.clear()
        self.scheduler.prefixes.close()

    def _take_in(self) -> None:
        """Read the inbox; with nothing to do, wait for it, and meanwhile tidy up the KV cache."""
        for note in self._inbox.read(wait=self.scheduler.idle, tidy_one=self.scheduler.prefixes.tidy_one):
            self._take(note)

    def _take(self, note: Note) -> None:
        if note is None:
            self._stopping = True
        elif isinstance(note, EngineRequest):
            job = self._jobs[note.id] = Job(note)
            if note.deadline is not None:
                self._deadlines[note.id] = note.deadline
            self._add(job.sequences)
            if not job.sequences[0].scoring:
                self._add(job.others())
            self._say(job, Started(len(note.prompt), note.seed))
        elif note in self._jobs:
            self.counters.cancelled += 1
            self._fail(self._jobs[note], LlmrunError(CANCELLED, "the request was cancelled"))

    def _add(self, sequences: Iterable[Sequence]) -> None:
        for sequence in sequences:
            self.scheduler.add(sequence)

    def _step(self) -> None:
        self.scheduler.admit()
        rows = self.scheduler.plan(self._tokens())
        if not rows or self._stopping:
            return
        self._drafting.add(rows, self._room_for)
        if not self._context.unified:
            rows.sort(key=slot_of)
        self._begin(rows)
        outputs = fill(self._batch, rows)
        prefill = prefill_of(rows)
        began = self._clock()
        if self._context.model.trimmable:  # what an aborted decode left must be cut away again
            self._long_prefills = frozenset(
                row.sequence.request.id for row in rows if row.length >= _LONG_PREFILL
            )
        self._context.use_adapters(rows[0].sequence.request.adapters)
        decoding = all(row.output and row.length == 1 for row in rows)
        if self.threads is not None:
            self._context.use_threads(self.threads.next if decoding else self.threads.most)
        status = self._context.decode(self._batch)
        self._long_prefills = frozenset()
        self._context.abort.clear()
        now = self._clock()
        if status is DecodeStatus.OK:
            self.scheduler.computed(rows)
            self.counters.stepped(prefill.tokens, sum(row.output for row in rows), now - began)
            self._learn(prefill, decoding, now - began, now)
            self._sample(rows, outputs)
        else:
            self._undo(rows, status)

    def _tokens(self) -> int:
        """How many the next step may have."""
        running = self.scheduler.running
        tokens = sum(s.decoding for s in running)
        if self.scheduler.wants_more:  # a decode step is not to pay for working it out
            burst = is_burst(running, self._clock())
            tokens += self.budget.tokens(tokens, self._alone(tokens), longest_prompt(running), burst=burst)
        return min(tokens, self._batch.capacity)

    def _room_for(self, rows: int) -> int:
        """How many of so many rows the next step can have."""
        return self.scheduler.prefixes.spare(min(rows, self._batch.capacity))

    def _learn(self, prefill: Prefill, decoding: bool, seconds: float, now: float) -> None:
        rows, tokens = self._batch.rows, prefill.tokens
        if tokens and not prefill.scored:  # else rows of logits are most of the cost
            self.budget.observe(tokens, rows, prefill.depth, seconds, self._alone(rows - tokens))
        if not decoding or tokens:
            return
        if self.threads is None or not self.threads.trying:
            self.cost.observe(rows, seconds)
        if self.threads is not None:
            share = self.threads.observe(rows, seconds, now)
            if share != 1.0:
                self.cost.scale(share)

    def _alone(self, rows: int) -> float:
        """What a step of so many rows takes beside its prompt tokens; of none what one row does, for the
        weights are read all the same."""
        return self.cost.seconds(max(1, rows))

    def _begin(self, rows: list[Row]) -> None:
        """Note of requests that have not been computed of before that they are now."""
        for sequence, _, _ in rows:
            job = self._jobs[sequence.request.id]
            if job.started is None:
                job.started = self._clock()
                self.counters.prompt_tokens += sequence.prompt_length
                self.counters.cached_tokens += sequence.cached

    def _undo(self, rows: list[Row], status: DecodeStatus) -> None:
        """A decode that did not happen: the memory goes back to what the sequences know."""
        if status in (DecodeStatus.INVALID, DecodeStatus.FATAL):
            raise RuntimeError(f"llama_decode: {status.name}")
        self.scheduler.undo(rows)
        if status is DecodeStatus.NO_SLOT and not self.scheduler.refused():
            for sequence in {r.sequence for r in rows}:
                job = self._jobs[sequence.request.id]
                self._fail(job, LlmrunError(INTERNAL, "llama.cpp found no room in an empty KV cache"))

    def _sample(self, rows: list[Row], outputs: list[int]) -> None:
        for (sequence, length, output), row in zip(rows, outputs, strict=True):
            job = self._jobs.get(sequence.request.id)
            if job is None:  # it failed with a row before this one
                continue
            if job.request.progress and not (sequence.generated or sequence.index):
                self._say(job, job.progress(self._clock()))
            try:
                if sequence.scoring:
                    self._say(job, score(sequence, row - length + 1, length, self._context))
                    if not sequence.scoring:
                        self._add(job.others())  # their texts come behind the prompt's scores
                if output:
                    self._advance(job, sequence, row)
            except LlmrunError as error:
                self._fail(job, error)

    def _advance(self, job: Job, sequence: Sequence, row: int) -> None:
        """Take a sequence's next tokens and say what became certain by them."""
        request = sequence.request
        reason: FinishReason | None
        limit: Limit | None
        if request.max_tokens == 0:  # only the prompt was wanted
            check_finite(self._context.logits(row))
            reason, limit = "length", request.limited_by
        else:
            chooser = self._choosers.of(sequence)
            chosen = chooser.tokens(row, sequence.draft, by_row=request.logprobs is not None)
            seconds = job.decoding_seconds(self._clock())
            taken = take(sequence, chosen, chooser, self._context, seconds)
            job.sampled(sequence, self._clock())
            self.counters.completion_tokens += taken.tokens
            if sequence.draft:
                self._keep(sequence, taken.row - row)
            if request.pace:
                self._say(job, Pace(sequence.index, sequence.generated, seconds * 1e3))
            if taken.text is not None:
                self._say(job, taken.text)
            reason, limit = taken.reason, taken.limit
            if reason is None and sequence.full:
                self.scheduler.shift(sequence)
                self._drafting.forget(sequence)
        if reason is not None:
            self._say(job, stopped(sequence, reason, limit))
            self._end(job, sequence)

    def _keep(self, sequence: Sequence, accepted: int) -> None:
        self.counters.drafted += len(sequence.draft)
        self.counters.accepted += accepted
        sequence.drafted += len(sequence.draft)
        sequence.accepted += accepted
        self.scheduler.keep(sequence, accepted)

    def _end(self, job: Job, sequence: Sequence) -> None:
        self._release(sequence)
        if job.ended:
            self._forget(job)
            self.counters.itl.merge(job.gaps)
            self._say(job, Finished(job.usage(), job.timings(self._clock())))

    def _end_overdue(self) -> None:
        """Requests whose time is up end with what they have."""
        if not self._deadlines:
            return
        now = self._clock()
        for job in [self._jobs[id] for id, deadline in self._deadlines.items() if deadline <= now]:
            if job.sequences[0].scoring:
                self._add(job.others())
            for sequence in job.sequences:
                if sequence.state is not State.ENDED:
                    self._cut(job, sequence)

    def _cut(self, job: Job, sequence: Sequence) -> None:
        """End an answer where it is; text that was held back for a stop string is part of it."""
        text = sequence.text.flush()
        if sequence.lines is not None:
            text, _ = sequence.lines.take(text, job.decoding_seconds(self._clock()), last=True)
        if (said := sequence.said(text)) is not None:
            self._say(job, said)
        self._say(job, stopped(sequence, "length", "time"))
        self._end(job, sequence)

    def _fail(self, job: Job, error: LlmrunError) -> None:
        self._forget(job)
        for sequence in job.sequences:
            self._release(sequence, spoiled=isinstance(error, NotFinite))
        self._say(job, Failed(error.info()))

    def _forget(self, job: Job) -> None:
        del self._jobs[job.request.id]
        self._deadlines.pop(job.request.id, None)

    def _release(self, sequence: Sequence, *, spoiled: bool = False) -> None:
        self.scheduler.end(sequence, spoiled=spoiled)
        self._drafting.forget(sequence)
        self._choosers.release(sequence)

    def _say(self, job: Job, event: Event) -> None:
        self._events.append((job.request.id, event))

    def _send(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self._emit(events)
