"""A sampler chain that is watched: what each sampler makes of the candidates, one after the other.

In: what a `SamplerChain` takes. Out: the same tokens, and `stages` beside each. It looks at the whole
vocabulary once a sampler, so it is made only for a request that asks for it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from llmrun.llama.library import lib
from llmrun.llama.sampler import CANDIDATE, SamplerChain
from llmrun.llama.vocab import Vocab
from llmrun.types import SamplerStage, SamplingParams, TopLogprob

# llama.cpp's names of samplers where they are not the options' own
_NAMES = {"typical": "typ_p", "temp": "temperature", "temp_ext": "temperature", "dist": "draw"}
GRAMMAR = "grammar"


class _Seen(NamedTuple):
    """Candidates that were left by one sampler, and their log probabilities."""

    name: str
    ids: npt.NDArray[np.int32]
    logprobs: npt.NDArray[np.float32]


class TracedChain(SamplerChain):
    """A `SamplerChain` whose `stages` are those of the token that it picked last, each with its `top`
    likeliest candidates; none where another was accepted since."""

    def __init__(
        self,
        vocab: Vocab,
        params: SamplingParams,
        *,
        seed: int,
        ctx: int,
        history: Iterable[int] = (),
        top: int,
    ) -> None:
        super().__init__(vocab, params, seed=seed, ctx=ctx, history=history)
        self._vocab = vocab
        self._top = top
        self._reach = None  # every candidate is shown
        self._seen: list[_Seen] = []
        self._picked: int | None = None

    def _choose(self, candidates: npt.NDArray[np.void]) -> int:
        self._seen = []
        token = super()._choose(candidates)
        self.stages = tuple(self._stage(seen, token) for seen in self._seen)
        self._picked = token
        return token

    def accept(self, token: int) -> None:
        super().accept(token)
        if token != self._picked:
            self.stages = ()
        self._picked = None

    def _apply(self, array: ctypes.Structure) -> None:
        """Sampler by sampler, as the chain itself does it."""
        if array.size < self._vocab.size:
            self._see(GRAMMAR, array)
        for place in range(lib.llama_sampler_chain_n(self._chain)):
            sampler = lib.llama_sampler_chain_get(self._chain, place)
            lib.llama_sampler_apply(sampler, ctypes.byref(array))
            self._see(_name(sampler), array)

    def _see(self, name: str, array: ctypes.Structure) -> None:
        held = ctypes.cast(array.data, ctypes.POINTER(ctypes.c_uint8 * (array.size * CANDIDATE.itemsize)))
        candidates = np.frombuffer(held.contents, CANDIDATE)
        if name == "greedy":  # it selects, and leaves the others where they are
            candidates = candidates[array.selected : array.selected + 1]
        possible = candidates[candidates["logit"] > -np.inf]
        if not len(possible):  # each was ruled out by a bias: the sampler treats them as alike
            possible = candidates.copy()
            possible["logit"] = 0.0
        logits = possible["logit"] - possible["logit"].max()
        self._seen.append(_Seen(name, possible["id"], logits - np.log(np.exp(logits).sum(dtype=np.float64))))

    def _stage(self, seen: _Seen, chosen: int) -> SamplerStage:
        name, ids, logprobs = seen
        likeliest = np.argsort(-logprobs, kind="stable")[: self._top]
        top = tuple(
            TopLogprob(int(ids[at]), self._vocab.piece(int(ids[at])), float(logprobs[at])) for at in likeliest
        )
        return SamplerStage(name, len(ids), float(logprobs[ids == chosen][0]), top)


def _name(sampler: ctypes.c_void_p) -> str:
    # A sign in front says how it runs, not what it is.
    name = str(lib.llama_sampler_name(sampler), "ascii").lstrip("?+").replace("-", "_")
    return _NAMES.get(name, name)
