"""The step loop: take in requests, plan, decode one batch, sample, say what happened.

Threads: `run` is the engine thread's whole life. `submit`, `cancel` and `stop` may be called from any
other thread; they only put a note into the inbox. Events leave through `emit`, one list per step,
called on the engine thread, so it must be quick. Every request ends in one Finished or Failed.
"""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass

from llmrun.engine.budget import PrefillBudget
from llmrun.engine.job import Job
from llmrun.engine.logprobs import token_logprob
from llmrun.engine.request import EngineRequest
from llmrun.engine.scheduler import Row, Scheduler
from llmrun.engine.sequence import Sequence
from llmrun.errors import CANCELLED, INTERNAL, SHUTTING_DOWN, LlmrunError
from llmrun.llama import Batch, Context, DecodeStatus, SamplerChain
from llmrun.types import Event, Failed, Finished, FinishReason, Started, Stopped

Emit = Callable[[list[tuple[str, Event]]], None]

# Rows from which on it is worth aborting a running decode when their request is cancelled.
_LONG_PREFILL = 64


@dataclass
class Counters:
    """Totals since the engine began."""

    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    steps: int = 0


class Engine:
    """Decodes all requests of one context together; `clock` gives seconds."""

    def __init__(
        self, context: Context, *, batch: int, parallel: int, emit: Emit, clock: Callable[[], float]
    ) -> None:
        self._context = context
        self._vocab = context.model.vocab
        self._batch = Batch(max(batch, parallel))
        self._budget = PrefillBudget(batch)
        self._emit = emit
        self._clock = clock
        self._inbox: queue.SimpleQueue[EngineRequest | str | None] = queue.SimpleQueue()
        self._jobs: dict[str, Job] = {}
        self._chains: dict[Sequence, SamplerChain] = {}
        self._events: list[tuple[str, Event]] = []
        self._long_prefills: frozenset[str] = frozenset()
        self._stopping = False
        self.ctx = context.ctx
        self.counters = Counters()
        self.scheduler = Scheduler(
            context,
            cells=context.ctx,
            slots=context.slots,
            parallel=parallel,
            trimmable=context.model.trimmable,
        )

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
        self._inbox.put(None)
        self._context.abort.set()

    # --- the engine thread

    def run(self) -> None:
        """Work until `stop`. An exception here means the engine is dead; all open requests fail."""
        failure = LlmrunError(SHUTTING_DOWN, "the model is being unloaded")
        try:
            while not self._stopping:
                self._take_in()
                self._step()
                self._send()
        except BaseException as error:
            failure = LlmrunError(INTERNAL, f"the engine failed: {error}")
            raise
        finally:
            for job in list(self._jobs.values()):
                self._fail(job, failure)
            self._send()

    def _take_in(self) -> None:
        """Read the inbox; with nothing to do, wait for it."""
        try:
            note = self._inbox.get(block=self.scheduler.idle)
            while True:
                self._take(note)
                note = self._inbox.get(block=False)
        except queue.Empty:
            pass

    def _take(self, note: EngineRequest | str | None) -> None:
        if note is None:
            self._stopping = True
        elif isinstance(note, EngineRequest):
            job = self._jobs[note.id] = Job(note)
            for sequence in job.sequences:
                self.scheduler.add(sequence)
            self._say(job, Started(len(note.prompt), note.seed))
        elif note in self._jobs:
            self._fail(self._jobs[note], LlmrunError(CANCELLED, "the request was cancelled"))

    def _step(self) -> None:
        busy = any(s.decoding for s in self.scheduler.running)
        rows = self.scheduler.plan(self._budget.tokens(busy))
        if not rows or self._stopping:
            return
        outputs = self._fill(rows)
        began = self._clock()
        if self._context.model.trimmable:  # what an aborted decode left must be cut away again
            self._long_prefills = frozenset(
                row.sequence.request.id for row in rows if row.length >= _LONG_PREFILL
            )
        status = self._context.decode(self._batch)
        self._long_prefills = frozenset()
        self._context.abort.clear()
        now = self._clock()
        if status is DecodeStatus.OK:
            self.scheduler.computed(rows)
            self.counters.steps += 1
            self._budget.observe(self._batch.rows, now - began)
            self._sample(rows, outputs)
        else:
            self._undo(rows, status)

    def _fill(self, rows: list[Row]) -> list[int]:
        """Put the rows into the batch; the batch index of each row's last token."""
        self._batch.clear()
        now = self._clock()
        last = []
        for sequence, length, output in rows:
            kv = sequence.kv
            assert kv is not None
            start = kv.length
            last.append(self._batch.add(sequence.tokens[start : start + length], start, kv.slot, output))
            job = self._jobs[sequence.request.id]
            if job.started is None:
                job.started = now
                self.counters.prompt_tokens += sequence.prompt_length
                self.counters.cached_tokens += sequence.cached
        return last

    def _undo(self, rows: list[Row], status: DecodeStatus) -> None:
        """A decode that did not happen: the memory goes back to what the sequences know."""
        if status in (DecodeStatus.INVALID, DecodeStatus.FATAL):
            raise RuntimeError(f"llama_decode: {status.name}")
        for sequence, _, _ in rows:
            assert sequence.kv is not None
            self._context.trim(sequence.kv.slot, sequence.computed)
        if status is DecodeStatus.NO_SLOT and not self.scheduler.refused():
            for sequence in {r.sequence for r in rows}:
                job = self._jobs[sequence.request.id]
                self._fail(job, LlmrunError(INTERNAL, "llama.cpp found no room in an empty KV cache"))

    def _sample(self, rows: list[Row], outputs: list[int]) -> None:
        for (sequence, _, output), row in zip(rows, outputs, strict=True):
            job = self._jobs.get(sequence.request.id)
            if job is None:  # it failed with a row before this one
                continue
            if job.request.progress and not (sequence.generated or sequence.index):
                self._say(job, job.progress(self._clock()))
            if output:
                try:
                    self._advance(job, sequence, row)
                except LlmrunError as error:
                    self._fail(job, error)

    def _advance(self, job: Job, sequence: Sequence, row: int) -> None:
        """Take a sequence's next tokens and say what became certain by them."""
        if sequence.request.max_tokens == 0:  # only the prompt was wanted
            self._say(job, _stopped(sequence, "length"))
            self._end(job, sequence)
            return
        request, constraint = sequence.request, sequence.constraint
        logprobs, shown = request.logprobs, request.shown
        tokens = self._next_tokens(sequence, row)
        job.sampled(self._clock())
        text, reason = "", None
        for count, token in enumerate(tokens, 1):
            sequence.append(token)
            self.counters.completion_tokens += 1
            if sequence.request.tokens:
                sequence.pending_tokens.append(token)
            ended = self._vocab.is_eog(token)
            if not ended or token in shown:
                piece = shown.get(token) or self._vocab.piece(token)
                text += sequence.text.push(piece, constraint is not None and constraint.quiet)
            if not ended:
                if logprobs is not None:
                    logits = self._context.logits(row)
                    sequence.pending_logprobs.append(
                        token_logprob(logits, token, logprobs, self._vocab.piece)
                    )
                ended = constraint is not None and count == len(tokens) and constraint.ended
            reason = sequence.finish_reason(ended, self.ctx)
            if reason is not None:
                break
        if reason is not None and sequence.text.stopped is None:
            text += sequence.text.flush()
        if sequence.lines is not None:
            text, over = sequence.lines.take(text, job.decoding_seconds, last=reason is not None)
            reason = "length" if over else reason
        if text or sequence.pending_logprobs:
            self._say(job, sequence.said(text))
        if reason is not None:
            self._say(job, _stopped(sequence, reason))
            self._end(job, sequence)

    def _next_tokens(self, sequence: Sequence, row: int) -> list[int]:
        """The token after an output row, sampled or forced by the grammar, and those forced behind it.

        Each log probability needs a row of its own: where they are wanted, one token at a time.
        """
        chain = self._chains.get(sequence) or self._make_chain(sequence)
        constraint = sequence.constraint
        if constraint is None:
            return [chain.sample(self._context, row)]
        tokens, forced = [], constraint.forced()
        if not forced:
            allowed = constraint.allowed()
            if allowed is None:
                token = chain.sample(self._context, row)
            else:
                token = chain.sample_among(allowed, self._context.logits(row))
            if not constraint.replaces(token):
                constraint.accept(token)
                tokens = [token]
            forced = constraint.forced()
        if sequence.request.logprobs is not None:
            forced = forced[: 1 - len(tokens)]
        for token in forced:
            chain.accept(token)
            constraint.accept(token)
        return tokens + forced

    def _make_chain(self, sequence: Sequence) -> SamplerChain:
        request = sequence.request
        chain = SamplerChain(
            self._vocab,
            request.params,
            seed=(request.seed + sequence.index) & 0xFFFFFFFF,
            ctx=self.ctx,
            history=request.prompt,
        )
        self._chains[sequence] = chain
        return chain

    def _end(self, job: Job, sequence: Sequence) -> None:
        self._release(sequence)
        if job.ended:
            del self._jobs[job.request.id]
            self._say(job, Finished(job.usage(), job.timings(self._clock())))

    def _fail(self, job: Job, error: LlmrunError) -> None:
        del self._jobs[job.request.id]
        for sequence in job.sequences:
            self._release(sequence)
        self._say(job, Failed(error.info()))

    def _release(self, sequence: Sequence) -> None:
        self.scheduler.end(sequence)
        if chain := self._chains.pop(sequence, None):
            chain.close()

    def _say(self, job: Job, event: Event) -> None:
        self._events.append((job.request.id, event))

    def _send(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self._emit(events)


def _stopped(sequence: Sequence, reason: FinishReason) -> Stopped:
    tokens = tuple(sequence.tokens.tolist()) if sequence.request.tokens else ()
    return Stopped(sequence.index, reason, sequence.text.stopped, tokens)
