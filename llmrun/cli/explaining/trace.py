"""One request, watched: what goes into the model, what it expects at each step, and what that takes.

In: a daemon and a conversation. Out: an `Explained`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence

from llmrun.cli.bench.figures import spread
from llmrun.cli.explaining.explained import (
    KV,
    Batch,
    Choice,
    Decoded,
    Explained,
    Prefilled,
    PromptPiece,
    Sampled,
)
from llmrun.client.client import Client
from llmrun.client.tracing import ChosenToken, Sampler, Step
from llmrun.client.wire import LoadedModel
from llmrun.store.anatomy import Anatomy, layer_kv
from llmrun.types import Message, Options


def watch(
    client: Client,
    model: str,
    messages: Sequence[Message],
    options: Options,
    candidates: int,
    sizes: tuple[Anatomy, str],
) -> Explained:
    """Send the conversation and keep all that is said of it. `sizes`: the model's, and its KV's type. All
    times are the engine's: what arrives here was held up by whatever else this process did."""
    if options.ctx is not None:
        client.load(model, options)  # else the template's text loads it, and leaves nothing cached behind
    rendered = client.render(model, messages)
    ids = [token.id for token in rendered.tokens]
    occupancy = _Occupancy(client, model)
    prefill: list[Prefilled] = []
    decoded: list[tuple[ChosenToken, float]] = []  # with the time since the first
    last, said = Step(), ""
    for step in client.trace(model, ids, options, candidates):
        if step.prompt_progress:
            prefill.append(Prefilled(step.prompt_progress.time_ms, step.prompt_progress.processed))
        for token in step.completion_probabilities:
            decoded.append((token, step.timings.predicted_ms))
            occupancy.look()
        said += step.content
        last = step
    timings, cached = last.timings, last.tokens_cached
    steps = tuple(_decoded(decoded, timings.ttft_ms))
    return Explained(
        model=model,
        rendered=rendered.prompt,
        prompt=tuple(
            PromptPiece(token.id, shown(token.raw), place < cached)
            for place, token in enumerate(rendered.tokens)
        ),
        cached=cached,
        prefill=tuple(prefill),
        steps=steps,
        answer=said,
        stopped_by=last.stop_type or "",
        queue_ms=timings.queue_ms,
        prefill_ms=timings.prefill_ms,
        ttft_ms=timings.ttft_ms,
        decode_ms=timings.decode_ms,
        itl_ms=spread([step.gap_ms for step in steps if step.gap_ms is not None]),
        settings=last.generation_settings,
        kv=kv_of(*sizes, len(ids), len(steps)),
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


def _decoded(tokens: Sequence[tuple[ChosenToken, float]], ttft_ms: float) -> Iterator[Decoded]:
    """The steps of an answer. Tokens that came together have one time, and only the first of them a gap."""
    before: float | None = None
    for token, since in tokens:
        gap = None if before is None or since == before else since - before
        yield _step(token, ttft_ms + since, gap)
        before = since


def _step(token: ChosenToken, now: float, gap: float | None) -> Decoded:
    return Decoded(
        id=token.id,
        text=shown(bytes(token.bytes)),
        probability=math.exp(token.logprob),
        ms=now,
        gap_ms=gap,
        candidates=tuple(
            Choice(candidate.id, shown(bytes(candidate.bytes)), math.exp(candidate.logprob))
            for candidate in token.top_logprobs
        ),
        samplers=tuple(_sampled(sampler) for sampler in token.samplers),
    )


def _sampled(sampler: Sampler) -> Sampled:
    left = tuple(Choice(token.id, shown(bytes(token.bytes)), token.prob) for token in sampler.top_probs)
    return Sampled(sampler.name, sampler.left, sampler.prob, left)


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
