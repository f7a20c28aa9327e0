"""How the tokens of one answer are chosen: by its samplers, within its grammar, with the help of guesses.

Why drafting changes no text. A draft is a guess at the next tokens, computed together with the answer's
newest one. For each place in turn a token is chosen exactly as it would have been without the guess: the
same samplers in the same state, the same grammar, the logits after the same tokens. As long as it equals
the guess, the row behind it has the logits for the next place; where it differs, the rows behind the
difference are thrown away. The token that is said is always the chosen one, never the guess, so the answer
has the distribution (greedy: the text; seeded: the text of that seed) it has without drafting. A random
draw is made and penalties move on only for tokens that are said.

This is the rejection rule of speculative sampling (https://arxiv.org/abs/2211.17192) for a draft that
proposes one token x with certainty: it accepts x with the model's own probability p(x), and else draws
from p without x. Drawing y from p and comparing it with x does both at once.

What may differ is rounding: llama.cpp may sum in another order for several rows than for one, so that near
ties fall otherwise, as they do for any other change of a batch's shape.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from llmrun.engine.finite import check_finite
from llmrun.engine.guide import Guide
from llmrun.engine.sequence import Sequence as Answer
from llmrun.llama import Context, SamplerChain, TracedChain
from llmrun.types import SamplerStage


class Chosen(NamedTuple):
    """A token of the answer, the output row that it follows, and what its samplers did, if traced."""

    token: int
    row: int
    stages: tuple[SamplerStage, ...] = ()


class Chooser:
    """One answer's samplers and guide, and how far they have come. Used by the engine's thread."""

    def __init__(self, context: Context, chain: SamplerChain, guide: Guide | None) -> None:
        self._context = context
        self._chain = chain
        self._guide = guide
        self._forced: deque[int] = deque()

    def tokens(self, row: int, draft: Sequence[int], *, by_row: bool) -> Iterator[Chosen]:
        """The tokens that follow output row `row`, at least one; `draft` was computed in the rows behind it.

        Behind the last come those that the grammar forces, without rows of their own; with `by_row` they
        wait until they have one. State moves on token by token: who has enough stops asking.
        """
        guesses: Iterable[int | None] = (*draft, None)
        for at, guess in enumerate(guesses, row):
            token = self._next(at)
            yield Chosen(token, at, self._chain.stages)
            if token != guess:
                break
        while not by_row and (forced := self._take_forced()) is not None:
            yield Chosen(forced, at)

    @property
    def ended(self) -> bool:
        """Whether nothing but an end token can follow."""
        return self._guide is not None and self._guide.ended

    def close(self) -> None:
        """Free the native samplers."""
        self._chain.close()

    def _next(self, row: int) -> int:
        logits = self._context.logits(row)
        check_finite(logits)
        guide = self._guide
        if guide is None:
            token = self._chain.pick(logits)
        else:
            forced = self._take_forced()
            if forced is not None:
                return forced
            allowed = guide.allowed()
            token = self._chain.pick(logits) if allowed is None else self._chain.pick_among(allowed, logits)
            if guide.replaces(token):
                return self._in_place_of(token)
            guide.accept(token)
        self._chain.accept(token)
        return token

    def _in_place_of(self, token: int) -> int:
        forced = self._take_forced()
        if forced is None:
            raise AssertionError(f"nothing comes in the place of token {token}")
        return forced

    def _take_forced(self) -> int | None:
        """The next token where the guide leaves no choice. Those it forces together stay together."""
        if self._guide is None:
            return None
        if not self._forced:
            self._forced.extend(self._guide.forced())
        if not self._forced:
            return None
        token = self._forced.popleft()
        self._chain.accept(token)
        self._guide.accept(token)
        return token


class Choosers:
    """Those of the answers that are being written; each begins with its answer's first token."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._of: dict[Answer, Chooser] = {}

    def __len__(self) -> int:
        return len(self._of)

    def of(self, answer: Answer) -> Chooser:
        """The answer's, made where it has none yet."""
        return self._of.get(answer) or self._make(answer)

    def release(self, answer: Answer) -> None:
        """Close the answer's, if it has one."""
        if chooser := self._of.pop(answer, None):
            chooser.close()

    def _make(self, answer: Answer) -> Chooser:
        request, vocab, ctx = answer.request, self._context.model.vocab, self._context.ctx
        seed = (request.seed + answer.index) & 0xFFFFFFFF
        kind = partial(TracedChain, top=request.logprobs or 0) if request.stages else SamplerChain
        chain = kind(vocab, request.params, seed=seed, ctx=ctx, history=request.prompt)
        chooser = self._of[answer] = Chooser(self._context, chain, answer.constraint)
        return chooser
