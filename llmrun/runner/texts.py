"""Makes requests for text what the engine takes: prompt to tokens, checked against the model; what governs
and limits the answer. What needs no engine is answered here."""

from __future__ import annotations

import contextlib
import functools
import secrets
import threading
from collections.abc import Callable

from llmrun.chat.prompt import Prompter
from llmrun.chat.turn import Turn
from llmrun.chat.vocab import Vocab
from llmrun.engine import EngineRequest, Grammars
from llmrun.errors import CONTEXT_LENGTH, LlmrunError
from llmrun.llama import Model
from llmrun.runner.adapting import scales
from llmrun.runner.answers import Answers
from llmrun.runner.frames import ModelInfo
from llmrun.runner.governing import Governing
from llmrun.runner.limiting import Limiter
from llmrun.runner.lookup import look_up
from llmrun.runner.overflow import Fitted, answer_limit, fit
from llmrun.types import (
    DetokenizeRequest,
    Event,
    Finished,
    GenerateRequest,
    Lookup,
    Options,
    SamplingParams,
    Timings,
    Usage,
)

_KEPT = 4


class TextDesk:
    """For one model; used by the preparing threads. Templates are rendered by one thread at a time."""

    def __init__(
        self,
        model: Model,
        info: ModelInfo,
        prompter: Prompter,
        grammars: Grammars,
        answers: Answers,
        clock: Callable[[], float],
    ) -> None:
        self._vocab = model.vocab
        self._info = info
        self._own_prompter = prompter
        self._grammars = grammars
        self._limiter = Limiter(model.vocab)
        self._answers = answers
        self._clock = clock
        self._prompting = threading.Lock()
        self._prompters: dict[str, Prompter] = {}

    def learn(self) -> None:
        """Do ahead of requests what the first conversation would wait for."""
        with self._prompting:
            self._own_prompter.learn()

    def looking_up(self, request: Lookup, arrived: float) -> list[Event]:
        """All events of a request that needs no engine."""
        inner = None if isinstance(request, DetokenizeRequest) else request.prompt
        # Text alone needs no template, and may be long.
        with self._prompting if inner is not None else contextlib.nullcontext():
            answer = look_up(request, self._prompter(inner), self._vocab)
        waited = (self._clock() - arrived) * 1e3
        none = Timings(queue_ms=waited, prefill_ms=0.0, decode_ms=0.0, ttft_ms=waited, itl_ms=0.0)
        return [answer, Finished(Usage(prompt=0, completion=0), none)]

    def writing(self, request: GenerateRequest, arrived: float) -> EngineRequest:
        """What the engine has to do. Its answers are known to `answers` from here on."""
        vocab, options = self._vocab, request.options
        fitted, turn, room = self._fitted(request)
        self._limiter.check(request.logit_bias)
        shown = turn.shown(vocab) if turn is not None and not turn.plain else {}
        self._announce(request, fitted.ids, turn)
        governing = Governing(request, turn, vocab, self._grammars, shown)
        seed, fixed = seed_of(options)
        most, limited_by = answer_limit(options.max_tokens, room, fitted.shift)
        guides, biases = self._limiter.limit(governing.guides(), options, request.n, request.logit_bias)
        return EngineRequest(
            id=request.id,
            prompt=tuple(fitted.ids),
            params=SamplingParams.from_options(options, biases),
            seed=seed,
            drafts=not fixed,
            arrived=arrived,
            deadline=None if options.time_limit is None else arrived + options.time_limit,
            n=request.n,
            max_tokens=most,
            limited_by=limited_by,
            stop=governing.stops,
            logprobs=request.logprobs,
            stages=request.stages,
            score_from=score_from(request, fitted.ids, vocab),
            constraints=guides,
            shown=shown,
            tokens=request.tokens,
            progress=request.progress,
            pace=request.pace,
            min_indent=request.min_indent,
            line_seconds=request.line_seconds,
            adapters=scales(request.adapters, self._info.adapters),
            client=request.client,
            priority=request.priority,
            shift=fitted.shift,
            truncated=fitted.left_out,
        )

    def _fitted(self, request: GenerateRequest) -> tuple[Fitted, Turn | None, int]:
        """The prompt, what the answer to it will look like, and the tokens of context that are left for it:
        at least one."""
        with self._prompting:
            prompter = self._prompter(request)
            prepared = prompter.prompt(request)
            # A model loaded with a larger context serves one who wants a smaller one, and keeps to that.
            wanted = request.options.ctx
            ctx = self._info.ctx if wanted is None else min(wanted, self._info.ctx)
            fitted = fit(request, prepared.ids, ctx, prompter.encode)
        length = len(fitted.ids)
        if length >= ctx:
            raise LlmrunError(
                CONTEXT_LENGTH,
                f"the prompt has {length} tokens, but the context holds {ctx} and the answer needs room too",
                prompt_tokens=length,
                context=ctx,
            )
        return fitted, prepared.turn, ctx - length

    def _announce(self, request: GenerateRequest, ids: list[int], turn: Turn | None) -> None:
        """Say what goes up in front of the answers, and what reads them."""
        if request.echo:
            raw = request.prompt
            text = raw if isinstance(raw, str) else self._vocab.detokenize(ids).decode("utf-8", "replace")
            self._answers.echo(request.id, text, request.n)
        if turn is not None and not turn.plain:
            make = functools.partial(turn.parser, request)
            self._answers.parse(request.id, make, request.n, parallel=request.tool_choice.parallel)

    def _prompter(self, request: GenerateRequest | None) -> Prompter:
        """The model's, or one for a request with a template of its own; the newest few are kept."""
        if request is None or request.template is None:
            return self._own_prompter
        prompter = self._prompters.pop(request.template, None)
        if prompter is None:
            prompter = Prompter(request.template, self._vocab, self._info.ctx)
        self._prompters[request.template] = prompter
        if len(self._prompters) > _KEPT:
            del self._prompters[next(iter(self._prompters))]
        return prompter


def seed_of(options: Options) -> tuple[int, bool]:
    """The seed of 32 bits to sample with, and whether the request fixed it; −1 asks for a fresh one."""
    if options.seed in (None, -1):
        return secrets.randbits(32), False
    return options.seed & 0xFFFFFFFF, True


def score_from(request: GenerateRequest, ids: list[int], vocab: Vocab) -> int | None:
    """Where the tokens of an echoed prompt begin, if their log probabilities are wanted: behind a BOS that is
    not in the prompt's text."""
    if not request.echo or request.logprobs is None:
        return None
    text = request.prompt
    if not isinstance(text, str) or vocab.bos is None or ids[0] != vocab.bos:
        return 0
    return 0 if text.startswith(vocab.text(vocab.bos)) else 1
