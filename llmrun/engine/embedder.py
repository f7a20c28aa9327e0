"""The loop that makes vectors: take in requests, compute one batch of their inputs, say what came out.

Threads: `run` is the embedding thread's whole life. `submit`, `cancel` and `stop` may be called from any
other thread. Events leave through `emit`, one list a batch. Every request ends in one Finished or Failed. A
request that is cancelled ends between two batches. The contexts are the embedder's own, so that the engine
which generates with the same model does not wait for it.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Sequence

import numpy as np

from llmrun.engine.counters import Counters
from llmrun.engine.engine import Emit
from llmrun.engine.vectors import Input, Room, VectorQueue, VectorRequest
from llmrun.errors import CANCELLED, INTERNAL, SHUTTING_DOWN, LlmrunError
from llmrun.llama import EmbeddingContext, Tokens, Vector
from llmrun.llama.embedding import SHARED_ROWS
from llmrun.types import Embedded, Event, Failed, Finished, Ranked

OpenContext = Callable[[int], EmbeddingContext]
Embed = Callable[[EmbeddingContext, list[Tokens]], list[Vector] | None]


class Embedder:
    """Serves one model. `longest`: tokens of the longest input; `clock` gives seconds.

    open_context  makes the context for inputs of so many tokens, when the first such input comes; where it
                  raises LlmrunError, that input's request fails
    embed         calls the context's method of that name
    """

    def __init__(
        self,
        open_context: OpenContext,
        *,
        longest: int,
        emit: Emit,
        clock: Callable[[], float],
        embed: Embed = EmbeddingContext.embed,
    ) -> None:
        self.longest = longest
        self.counters = Counters()
        self._open_context = open_context
        self._embed = embed
        self._short: EmbeddingContext | None = None
        self._long: EmbeddingContext | None = None
        self._emit = emit
        self._clock = clock
        self._inbox: queue.SimpleQueue[VectorRequest | str | None] = queue.SimpleQueue()
        self._queue = VectorQueue()
        self._open: dict[str, VectorRequest] = {}
        self._events: list[tuple[str, Event]] = []
        self._stopping = False

    @property
    def running(self) -> int:
        """Requests that have begun and not ended."""
        return len(self._open)

    # --- from other threads

    def submit(self, request: VectorRequest) -> None:
        """Queue a request whose inputs have at most `longest` tokens."""
        self._inbox.put(request)

    def cancel(self, request_id: str) -> None:
        """End a request before the next batch; an id that has ended already is ignored."""
        self._inbox.put(request_id)

    def stop(self) -> None:
        """End `run`; requests that are still open fail."""
        self._stopping = True
        self._inbox.put(None)
        for context in (self._short, self._long):
            if context is not None:
                context.abort.set()

    # --- the embedding thread

    def warm_up(self) -> None:
        """Open the context for short inputs and compute one, so that a model that cannot run fails here."""
        token = np.array([0], np.int32)
        self._context(1).embed([token])

    def run(self) -> None:
        """Work until `stop`. An exception here means that the model is dead; all open requests fail."""
        failure = LlmrunError(SHUTTING_DOWN, "the model is being unloaded")
        try:
            while not self._stopping:
                self._take_in()
                if len(self._queue) and not self._stopping:
                    self._step()
                self._send()
        except BaseException as error:
            failure = LlmrunError(INTERNAL, f"the embedding failed: {error}")
            raise
        finally:
            for request in list(self._open.values()):
                self._fail(request, failure)
            self._send()

    def _take_in(self) -> None:
        """Read the inbox; with nothing to do, wait for it."""
        try:
            note = self._inbox.get(block=not len(self._queue))
            while True:
                if isinstance(note, VectorRequest):
                    self._open[note.id] = note
                    self._queue.add(note)
                elif note in self._open:
                    self._fail(self._open[note], LlmrunError(CANCELLED, "the request was cancelled"))
                note = self._inbox.get(block=False)
        except queue.Empty:
            pass

    def _step(self) -> None:
        try:
            context = self._context(self._queue.next_length)
        except LlmrunError as error:
            (refused,) = self._queue.take(Room(1, 0, int))
            self._fail(refused.request, error)
            return
        inputs = self._queue.take(Room(context.sequences, context.rows, context.rows_of))
        began = self._clock()
        for request, _ in inputs:
            if request.started is None:
                request.started = began
        vectors = self._embed(context, [each.tokens for each in inputs])
        if vectors is not None:
            self.counters.steps += 1
            self._answer(inputs, vectors)

    def _context(self, tokens: int) -> EmbeddingContext:
        """One that takes an input of so many tokens. That for long ones grows by doubling, and is opened only
        when there is a long input: it may take more memory than the model."""
        shared = min(SHARED_ROWS, self.longest)
        if tokens <= shared:
            if self._short is None:
                self._short = self._open_context(shared)
            return self._short
        if self._long is None or self._long.tokens < tokens:
            if self._long is not None:
                self._long.close()
                self._long = None
            size = shared
            while size < tokens:
                size *= 2
            self._long = self._open_context(min(size, self.longest))
        return self._long

    def _answer(self, inputs: Sequence[Input], vectors: Sequence[Vector]) -> None:
        for (request, number), vector in zip(inputs, vectors, strict=True):
            if request.id not in self._open:  # it failed with an input before this one
                continue
            if not np.isfinite(vector).all():
                message = f"the model made no numbers of input {number}"
                self._fail(request, LlmrunError(INTERNAL, message, hint="try another quant of it"))
                continue
            self.counters.prompt_tokens += len(request.inputs[number])
            self._say(request, _event(request, number, vector))
            if number + 1 == len(request.inputs):
                del self._open[request.id]
                self._say(request, Finished(request.usage(), request.timings(self._clock())))

    def _fail(self, request: VectorRequest, error: LlmrunError) -> None:
        del self._open[request.id]
        self._queue.remove(request)
        self._say(request, Failed(error.info()))

    def _say(self, request: VectorRequest, event: Event) -> None:
        self._events.append((request.id, event))

    def _send(self) -> None:
        if self._events:
            events, self._events = self._events, []
            self._emit(events)


def _event(request: VectorRequest, number: int, vector: Vector) -> Event:
    if request.score is not None:
        return Ranked(number, float(vector[request.score]))
    if request.dimensions is not None:
        vector = vector[: request.dimensions]
    if request.normalize and (length := float(np.linalg.norm(vector))) > 0:
        vector = vector / length
    return Embedded(number, vector.astype("<f4").tobytes(), request.truncated[number])
