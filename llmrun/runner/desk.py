"""Takes requests in: prompt to tokens, checked against the model, handed to the engine. What needs no
engine is answered here.

Works on preparing threads, so that templates, tokenising and grammars never hold up a decode step.
"""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
from collections.abc import Callable

from llmrun.chat.prompt import Prompter
from llmrun.chat.vocab import Vocab
from llmrun.engine import EngineRequest, VectorRequest
from llmrun.errors import (
    CANCELLED,
    CONTEXT_LENGTH,
    INTERNAL,
    INVALID_REQUEST,
    LlmrunError,
)
from llmrun.runner.adapting import scales
from llmrun.runner.answers import Answers
from llmrun.runner.governing import Governing
from llmrun.runner.limiting import Limiter
from llmrun.runner.loading import Loaded
from llmrun.runner.lookup import look_up
from llmrun.runner.overflow import answer_limit, fit
from llmrun.types import (
    AnyRequest,
    DetokenizeRequest,
    EmbedRequest,
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Lookup,
    SamplingParams,
    Timings,
    Usage,
)

_KEPT = 4
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
        self._limiter = Limiter(loaded.model.vocab)
        self._answers = answers
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()
        self._preparing: set[str] = set()
        self._cancelled: set[str] = set()
        self._prompting = threading.Lock()
        self._prompters: dict[str, Prompter] = {}

    def learn(self) -> None:
        """Do ahead of requests what the first conversation would wait for."""
        with self._prompting:
            self._loaded.prompter.learn()

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
        arrived = self._clock()
        ready: _Ready
        try:
            self._refuse_cancelled(request.id)  # nobody behind it should wait for what nobody wants
            ready = self._ready(request, arrived)
        except LlmrunError as error:
            ready = [Failed(error.info())]
        except Exception as error:
            failure = LlmrunError(INTERNAL, f"the prompt could not be prepared: {error!r}")
            ready = [Failed(failure.info())]
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
            return self._prepared(request, arrived)
        if isinstance(request, Lookup):
            return self._looked_up(request, arrived)
        if isinstance(request, EmbedRequest):
            return self._loaded.vectors.embedding(request, arrived)
        return self._loaded.vectors.ranking(request, arrived)

    def _looked_up(self, request: Lookup, arrived: float) -> list[Event]:
        vocab = self._loaded.model.vocab
        inner = None if isinstance(request, DetokenizeRequest) else request.prompt
        # Text alone needs no template, and may be long.
        with self._prompting if inner is not None else contextlib.nullcontext():
            answer = look_up(request, self._prompter(inner), vocab)
        waited = (self._clock() - arrived) * 1e3
        none = Timings(queue_ms=waited, prefill_ms=0.0, decode_ms=0.0, ttft_ms=waited, itl_ms=0.0)
        return [answer, Finished(Usage(prompt=0, completion=0), none)]

    def _prompter(self, request: GenerateRequest | None) -> Prompter:
        """The model's, or one for a request with a template of its own; the newest few are kept."""
        if request is None or request.template is None:
            return self._loaded.prompter
        prompter = self._prompters.pop(request.template, None)
        if prompter is None:
            prompter = Prompter(request.template, self._loaded.model.vocab, self._loaded.info.ctx)
        self._prompters[request.template] = prompter
        if len(self._prompters) > _KEPT:
            del self._prompters[next(iter(self._prompters))]
        return prompter

    def _prepared(self, request: GenerateRequest, arrived: float) -> EngineRequest:
        vocab, info, options = self._loaded.model.vocab, self._loaded.info, request.options
        with self._prompting:
            prompter = self._prompter(request)
            prepared = prompter.prompt(request)
            # A model loaded with a larger context serves one who wants a smaller one, and keeps to that.
            ctx = info.ctx if options.ctx is None else min(options.ctx, info.ctx)
            fitted = fit(request, prepared.ids, ctx, prompter.encode)
        prompt, turn = fitted.ids, prepared.turn
        room = ctx - len(prompt)
        if room <= 0:
            raise LlmrunError(
                CONTEXT_LENGTH,
                f"the prompt has {len(prompt)} tokens, but the context holds {ctx}"
                " and the answer needs room too",
                prompt_tokens=len(prompt),
                context=ctx,
            )
        for token in request.logit_bias:
            if not 0 <= token < vocab.size:
                raise LlmrunError(
                    INVALID_REQUEST,
                    f"logit_bias names token {token}, but the model's tokens are 0 to {vocab.size - 1}",
                    field="logit_bias",
                )
        if request.echo:
            raw = request.prompt
            text = raw if isinstance(raw, str) else vocab.detokenize(prompt).decode("utf-8", "replace")
            self._answers.echo(request.id, text, request.n)
        shown: dict[int, bytes] = {}
        if turn is not None and not turn.plain:
            shown = turn.shown(vocab)
            self._answers.parse(
                request.id,
                functools.partial(turn.parser, request),
                request.n,
                parallel=request.tool_choice.parallel,
            )
        governing = Governing(request, turn, vocab, self._loaded.grammars, shown)
        seed = secrets.randbits(32) if options.seed in (None, -1) else options.seed & 0xFFFFFFFF
        guides, biases = self._limiter.limit(governing.guides(), options, request.n)
        return EngineRequest(
            id=request.id,
            prompt=tuple(prompt),
            params=SamplingParams.from_options(options, {**request.logit_bias, **biases}),
            seed=seed,
            arrived=arrived,
            n=request.n,
            max_tokens=answer_limit(options.max_tokens, room, fitted.shift),
            stop=governing.stops,
            logprobs=request.logprobs,
            score_from=score_from(request, prompt, vocab),
            constraints=guides,
            shown=shown,
            tokens=request.tokens,
            progress=request.progress,
            min_indent=request.min_indent,
            line_seconds=request.line_seconds,
            adapters=scales(request.adapters, info.adapters),
            client=request.client,
            priority=request.priority,
            shift=fitted.shift,
            truncated=fitted.left_out,
        )


def score_from(request: GenerateRequest, ids: list[int], vocab: Vocab) -> int | None:
    """Where the tokens of an echoed prompt begin, if their log probabilities are wanted: behind a BOS that is
    not in the prompt's text."""
    if not request.echo or request.logprobs is None:
        return None
    text = request.prompt
    if not isinstance(text, str) or vocab.bos is None or ids[0] != vocab.bos:
        return 0
    return 0 if text.startswith(vocab.text(vocab.bos)) else 1
