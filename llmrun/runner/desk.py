"""Takes requests in: has them prepared and handed to the engine or the embedder, unless they were cancelled.

Works on preparing threads, so that templates, tokenising and grammars never hold up a decode step.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable

from llmrun.engine import EngineRequest, VectorRequest
from llmrun.errors import CANCELLED, INTERNAL, INVALID_REQUEST, LlmrunError
from llmrun.log import fields, note_request
from llmrun.runner.answers import Answers
from llmrun.runner.exhaustion import exhausted
from llmrun.runner.loading import Loaded
from llmrun.runner.texts import TextDesk
from llmrun.types import AnyRequest, EmbedRequest, Event, Failed, GenerateRequest, Lookup

log = logging.getLogger(__name__)

_Ready = EngineRequest | VectorRequest | list[Event]


class Desk:
    """Between the frames and the engine of one model.

    A request may be cancelled before, while and after it is prepared; `_lock` decides which, so that
    it always ends in exactly one event.

    What may take long is prepared by one thread, the rest by another: a grammar may take most of a second,
    and nobody else waits for it.
    """

    def __init__(
        self,
        loaded: Loaded,
        answers: Answers,
        say: Callable[[str, Event], None],
        clock: Callable[[], float],
    ) -> None:
        self._loaded = loaded
        self._texts = TextDesk(loaded.model, loaded.info, loaded.prompter, loaded.grammars, answers, clock)
        self._answers = answers
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._preparing: set[str] = set()
        self._cancelled: set[str] = set()

    def learn(self) -> None:
        """Do ahead of requests what the first conversation would wait for."""
        self._texts.learn()

    def expect(self, request_id: str) -> None:
        """A request arrived and will be prepared."""
        with self._lock:
            self._preparing.add(request_id)

    def cancel(self, request_id: str) -> None:
        """The client is gone. From the reading thread."""
        with self._lock:
            if request_id in self._preparing:
                self._cancelled.add(request_id)
            else:
                for worker in self._loaded.workers:
                    worker.cancel(request_id)

    def prepare(self, request: AnyRequest) -> None:
        """Hand the request to the engine or answer it, or end it with the reason why not."""
        note_request(request.id)
        try:
            self._prepare(request)
        finally:
            note_request("")

    def _prepare(self, request: AnyRequest) -> None:
        arrived = self._clock()
        ready: _Ready
        try:
            self._refuse_cancelled(request.id)  # nobody behind it should wait for what nobody wants
            ready = self._ready(request, arrived)
            _tell(ready)
        except LlmrunError as error:
            ready = [Failed(error.info())]
        except Exception as error:
            ready = [Failed(_why(error).info())]
        with self._lock:
            self._preparing.discard(request.id)
            if request.id in self._cancelled:
                self._cancelled.discard(request.id)
                ready = [Failed(LlmrunError(CANCELLED, "the request was cancelled").info())]
            if not isinstance(ready, list):
                self._submit(ready)
                return
        self._answers.forget(request.id)
        for event in ready:
            self._say(request.id, event)

    def _submit(self, ready: EngineRequest | VectorRequest) -> None:
        if isinstance(ready, VectorRequest):
            self._loaded.embedder.submit(ready)
        else:
            assert self._loaded.engine is not None
            self._loaded.engine.submit(ready)

    def _refuse_cancelled(self, request_id: str) -> None:
        with self._lock:
            if request_id in self._cancelled:
                raise LlmrunError(CANCELLED, "the request was cancelled")

    def _refuse_without_engine(self) -> None:
        if self._loaded.engine is None:
            kind = self._loaded.info.kind
            raise LlmrunError(
                INVALID_REQUEST,
                f"this is a model of the kind {kind}, which writes no text",
                hint="use a chat model",
                field="model",
            )

    def _ready(self, request: AnyRequest, arrived: float) -> _Ready:
        """What the engine or the embedder has to do for the request, or all of its answer."""
        if isinstance(request, GenerateRequest):
            self._refuse_without_engine()
            return self._texts.writing(request, arrived)
        if isinstance(request, Lookup):
            return self._texts.looking_up(request, arrived)
        if isinstance(request, EmbedRequest):
            return self._loaded.vectors.embedding(request, arrived)
        return self._loaded.vectors.ranking(request, arrived)


def _tell(ready: _Ready) -> None:
    """Log what is about to be computed: of a runner that dies, the last lines tell what it had begun."""
    if isinstance(ready, EngineRequest):
        log.info("computes a prompt of %d tokens", len(ready.prompt), extra=fields(prompt=len(ready.prompt)))
    elif isinstance(ready, VectorRequest):
        tokens = sum(map(len, ready.inputs))
        log.info("computes %d inputs of %d tokens", len(ready.inputs), tokens, extra=fields(prompt=tokens))


def _why(error: Exception) -> LlmrunError:
    """Why a prompt could not be prepared."""
    internal = LlmrunError(INTERNAL, f"the prompt could not be prepared: {error!r}")
    return exhausted(error, "while the prompt was prepared") or internal
