"""One request, watched: what goes into the model, what it expects at each step, and what that takes.

In: a daemon and a conversation. Out: an `Explained`, which is plain data.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from llmrun.cli.bench.figures import spread
from llmrun.client.client import Client
from llmrun.client.tracing import Candidate, ChosenToken, Step
from llmrun.client.wire import LoadedModel
from llmrun.store.anatomy import Anatomy, layer_kv
from llmrun.types import Message, Options


class PromptPiece(msgspec.Struct, frozen=True):
    """A token of the prompt; cached: its KV was there already."""

    id: int
    text: str
    cached: bool


class Prefilled(msgspec.Struct, frozen=True):
    """Prompt tokens that were done `ms` after the first of them was begun."""

    ms: float
    processed: int


class Choice(msgspec.Struct, frozen=True):
    """A token and how likely the model took it to be, before any sampler."""

    id: int
    text: str
    probability: float


class Decoded(msgspec.Struct, frozen=True):
    """A token of the answer, beside the likeliest ones, `ms` after the request was sent and `gap_ms` after
    the token before; None for the first, and for one that came in the same part as the one before."""

    id: int
    text: str
    probability: float
    ms: float
    gap_ms: float | None
    candidates: tuple[Choice, ...]


class KV(msgspec.Struct, frozen=True):
    """Bytes of the KV cache. per_token: over all layers that keep one."""

    type: str
    layers: int
    per_token: int
    prompt: int
    answer: int


class Batch(msgspec.Struct, frozen=True):
    """What shared the steps with the request, as it was when its first token came; `places` there are."""

    places: int
    running: int
    waiting: int
    cells_used: int
    cells: int


class Explained(msgspec.Struct, frozen=True):
    """Times in milliseconds; settings are those of the samplers, in llama-server's names."""

    model: str
    rendered: str
    prompt: tuple[PromptPiece, ...]
    cached: int
    prefill: tuple[Prefilled, ...]
    steps: tuple[Decoded, ...]
    answer: str
    stopped_by: str
    queue_ms: float
    prefill_ms: float
    ttft_ms: float
    decode_ms: float
    itl_ms: dict[str, float | None]
    settings: dict[str, Any]
    kv: KV
    batch: Batch | None


def watch(
    client: Client,
    model: str,
    messages: Sequence[Message],
    options: Options,
    candidates: int,
    sizes: tuple[Anatomy, str],
    clock: Callable[[], float] = time.perf_counter,
) -> Explained:
    """Send the conversation and keep all that is said of it. `sizes`: the model's, and its KV's type."""
    if options.ctx is not None:
        client.load(model, options)  # else the template's text loads it, and leaves nothing cached behind
    rendered = client.render(model, messages)
    ids = [token.id for token in rendered.tokens]
    occupancy = _Occupancy(client, model)
    prefill: list[Prefilled] = []
    decoded: list[Decoded] = []
    last, said, before = Step(), "", None
    begun = clock()
    for step in client.trace(model, ids, options, candidates):
        now = (clock() - begun) * 1e3
        if step.prompt_progress:
            prefill.append(Prefilled(step.prompt_progress.time_ms, step.prompt_progress.processed))
        for place, token in enumerate(step.completion_probabilities):
            gap = None if before is None or place else now - before
            decoded.append(_decoded(token, now, gap))
            before = now
            occupancy.look()
        said += step.content
        last = step
    timings = last.timings
    cached = last.tokens_cached
    return Explained(
        model=model,
        rendered=rendered.prompt,
        prompt=tuple(
            PromptPiece(token.id, shown(token.raw), place < cached)
            for place, token in enumerate(rendered.tokens)
        ),
        cached=cached,
        prefill=tuple(prefill),
        steps=tuple(decoded),
        answer=said,
        stopped_by=last.stop_type or "",
        queue_ms=timings.queue_ms if timings else 0.0,
        prefill_ms=timings.prefill_ms if timings else 0.0,
        ttft_ms=decoded[0].ms if decoded else 0.0,
        decode_ms=timings.decode_ms if timings else 0.0,
        itl_ms=spread([step.gap_ms for step in decoded if step.gap_ms is not None]),
        settings=last.generation_settings,
        kv=kv_of(*sizes, len(ids), len(decoded)),
        batch=occupancy.found(),
    )


def kv_of(model: Anatomy, kv_type: str, prompt: int, answer: int) -> KV:
    """KV bytes by the formula: the sum over layers of what a token's keys and values take there. The answer's
    last token is never computed, so it has none."""
    each = [layer_kv(layer, kv_type) for layer in model.layers]
    per_token = sum(each)
    return KV(
        type=kv_type,
        layers=sum(1 for size in each if size),
        per_token=per_token,
        prompt=prompt * per_token,
        answer=max(0, answer - 1) * per_token,
    )


def shown(raw: bytes) -> str:
    """A token's bytes as text; what is no text is written as `\\\\xf0`."""
    return raw.decode("utf-8", "backslashreplace")


def _decoded(token: ChosenToken, now: float, gap: float | None) -> Decoded:
    return Decoded(
        id=token.id,
        text=shown(bytes(token.bytes)),
        probability=math.exp(token.logprob),
        ms=now,
        gap_ms=gap,
        candidates=tuple(_choice(candidate) for candidate in token.top_logprobs),
    )


def _choice(candidate: Candidate) -> Choice:
    return Choice(candidate.id, shown(bytes(candidate.bytes)), math.exp(candidate.logprob))


class _Occupancy:
    """Asks for the engine's figures once, beside the stream, so that no token waits for it."""

    def __init__(self, client: Client, model: str) -> None:
        self._client = client
        self._model = model
        self._thread: threading.Thread | None = None
        self._loaded: list[LoadedModel] = []

    def look(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._ask, daemon=True)
            self._thread.start()

    def _ask(self) -> None:
        self._loaded = [loaded for loaded in self._client.loaded() if loaded.name == self._model]

    def found(self) -> Batch | None:
        """None where the model was gone, or no token came."""
        if self._thread is not None:
            self._thread.join()
        for loaded in self._loaded:
            if loaded.info and loaded.stats:
                stats = loaded.stats
                return Batch(
                    loaded.info.parallel, stats.running, stats.waiting, stats.kv_used, stats.kv_total
                )
        return None
