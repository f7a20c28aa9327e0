"""From a Load frame to a warm model: weights, context, engine, prompter."""

from __future__ import annotations

import functools
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from llmrun.chat.pair import PairEncoder
from llmrun.chat.prompt import Prompter
from llmrun.engine import Cost, Embedder, Engine, Grammars, PrefillBudget, PrefillCost, ThreadChoice
from llmrun.engine.engine import Emit
from llmrun.engine.tiles import tiled_rows
from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama import (
    Adapter,
    Batch,
    Context,
    ContextSettings,
    DecodeStatus,
    EmbeddingContext,
    Model,
    devices,
    guide_tokenizer,
)
from llmrun.llama.embedding import SHARED_ROWS, SLOTS
from llmrun.runner import step_times
from llmrun.runner.drafting import Small, drafters, load_small
from llmrun.runner.embedding import embed_apart, open_embedding, warm_up_embedder
from llmrun.runner.frames import Load, ModelInfo
from llmrun.runner.kv_cache import most_retained, saved_prefixes
from llmrun.runner.load_progress import watched
from llmrun.runner.machine import cores, gpu_memory, has_gpu
from llmrun.runner.meanwhile import beside
from llmrun.runner.opening import open_model
from llmrun.runner.passing_thread import on_passing_thread
from llmrun.runner.sizing import Sizes, longest_input, sizes
from llmrun.runner.vectors import VectorDesk
from llmrun.store.anatomy import Anatomy, anatomy
from llmrun.store.attention import BATCH, attention
from llmrun.store.facts import VECTOR_KINDS, facts_of
from llmrun.store.gguf import GGUFHeader
from llmrun.store.plan import streams
from llmrun.store.quants import shard_siblings


@dataclass(frozen=True)
class Loaded:
    """A model ready to work.

    engine  None where the model writes no text
    times   where the times of its steps are kept
    """

    model: Model
    engine: Engine | None
    embedder: Embedder
    prompter: Prompter
    grammars: Grammars
    vectors: VectorDesk
    info: ModelInfo
    times: Path | None = None

    @property
    def workers(self) -> list[Engine | Embedder]:
        """What runs on threads of its own."""
        return [self.embedder] if self.engine is None else [self.engine, self.embedder]

    def close(self) -> None:
        """Keep what was learnt, and free the model; its workers have ended."""
        if self.engine is not None and self.times is not None and (seconds := self.engine.cost.known):
            choice = self.engine.threads
            threads = choice.threads if choice is not None and choice.explored else None
            step_times.write(
                self.times, step_times.StepTimes(threads, seconds, self.engine.budget.cost.known)
            )
        self.model.close()


def load(
    spec: Load,
    emit: Emit,
    on_progress: Callable[[float], None],
    on_weights: Callable[[], None] = lambda: None,
) -> Loaded:
    """Load the model and decode one token, so that a file that cannot run fails here. `on_weights` is called
    when the weights are in memory, and what they are computed with is not.

    Raises MODEL_LOAD or NO_MEMORY.
    """
    path = Path(spec.path)
    files = [path.with_name(name) for name in shard_siblings(path.name)]
    with watched(sum(file.stat().st_size for file in files if file.exists()), on_progress) as placed:
        model, headers = open_model(path, spec.gpu_layers, placed)
    try:
        return _prepare(spec, path, model, headers, emit, on_weights)
    except BaseException:
        model.close()
        raise


def _prepare(
    spec: Load,
    path: Path,
    model: Model,
    headers: list[GGUFHeader],
    emit: Emit,
    on_weights: Callable[[], None],
) -> Loaded:
    if reason := model.unservable:
        raise LlmrunError(MODEL_LOAD, f"{spec.name} {reason}", hint="use a decoder-only chat model")
    shape, kind = anatomy(headers), facts_of(headers, path).kind
    adapters = [Adapter(model, Path(path)) for path in spec.adapters]
    small = load_small(spec, model) if kind not in VECTOR_KINDS else None
    on_weights()
    if kind in VECTOR_KINDS:
        engine, parallel = None, 1 if model.has_memory else SLOTS - 1
        longest = longest_input(spec.ctx, model.ctx_train, bounded=not model.has_memory)
        kv_bytes = shape.kv_bytes(min(longest, SHARED_ROWS), "f16")
    else:
        with beside(model.vocab.scan_tokens) as scanning:  # one waits for memory, the other is Python's work
            engine = _engine(spec, model, shape, adapters, small, emit)
        scanning.result()
        longest, parallel = engine.ctx, engine.scheduler.parallel
        caches = streams(shape, spec.kv_layout, spec.parallel)
        kv_bytes = caches * shape.kv_bytes(longest, spec.kv_type)
    embedder = Embedder(
        functools.partial(open_embedding, spec, model, shape, adapters),
        longest=longest,
        emit=emit,
        clock=time.monotonic,
        embed=EmbeddingContext.embed if engine is None else embed_apart,
    )
    if engine is None:
        on_passing_thread(functools.partial(warm_up_embedder, spec.name, embedder))
    template = spec.template or model.chat_template
    pairs = PairEncoder(model.rank_template, model.vocab, model.vocab.pair_edges)
    return Loaded(
        model=model,
        engine=engine,
        embedder=embedder,
        prompter=Prompter(template, model.vocab, longest),
        grammars=Grammars(functools.partial(guide_tokenizer, model.vocab)),
        vectors=VectorDesk(spec.name, model, pairs, longest),
        times=step_times.file_for(spec),
        info=ModelInfo(
            ctx=longest,
            ctx_train=model.ctx_train,
            parallel=parallel,
            vocab=model.vocab.size,
            params=model.parameters,
            size=model.size,
            kv_bytes=kv_bytes,
            device=_device_name(),
            description=model.description,
            adapters=len(adapters),
            kind=kind,
        ),
    )


def _engine(
    spec: Load, model: Model, shape: Anatomy, adapters: list[Adapter], small: Small | None, emit: Emit
) -> Engine:
    """The engine of a model that writes, over a context that has computed one token."""
    chosen = sizes(
        spec,
        shape,
        draft=small.shape if small else None,
        ctx_train=model.ctx_train,
        trimmable=model.trimmable,
        memory=psutil.virtual_memory().available,
        gpu_memory=gpu_memory(),
        cores=cores(),
    )
    gpu = spec.gpu_layers != 0 and has_gpu()
    way = attention(
        shape,
        spec.flash_attention,
        spec.ctx or model.ctx_train,
        spec.kv_type,
        gpu=gpu,
        unified=chosen.unified,
    )
    context = Context(
        model,
        ContextSettings(
            ctx=chosen.ctx,
            batch=BATCH,
            slots=chosen.slots,
            threads=chosen.threads,
            threads_batch=chosen.threads,
            kv_type=spec.kv_type,
            unified=chosen.unified,
            flash_attention=way.flash,
            at_once=way.rows,
        ),
        adapters,
    )
    on_passing_thread(functools.partial(_warm_up, spec, context))
    known = step_times.read(step_times.file_for(spec))
    shared = chosen.unified and not model.saves_whole
    return Engine(
        context,
        batch=BATCH,
        parallel=chosen.parallel,
        emit=emit,
        clock=time.monotonic,
        saved=saved_prefixes(
            spec,
            whole=model.saves_whole,
            streams=1 if chosen.unified else chosen.slots,
            flash=way.flash,
        ),
        most_retained=most_retained(shape) if shared and not gpu else None,
        drafters=drafters(spec, context, small, chosen),
        threads=ThreadChoice(chosen.threads, known.threads) if spec.threads is None else None,
        known=known.seconds,
        prefill=_budget(known.prefill, flash=way.flash is not False and not gpu, shape=shape, chosen=chosen),
    )


def _budget(
    known: tuple[float, float, float] | None, *, flash: bool, shape: Anatomy, chosen: Sizes
) -> PrefillBudget:
    """The budget of prompt tokens; `flash`: llama.cpp's flash attention computes them on the CPU."""
    cost = PrefillCost(Cost(*known) if known else None)
    if not flash:
        return PrefillBudget(BATCH, cost)
    return PrefillBudget(
        BATCH, cost, functools.partial(tiled_rows, heads=shape.heads, threads=chosen.threads)
    )


def _warm_up(spec: Load, context: Context) -> None:
    batch = Batch(1)
    token = context.model.vocab.bos or 0
    batch.add(np.array([token], np.int32), 0, 0, outputs=1)
    context.use_adapters((1.0,) * len(spec.adapters))
    status = context.decode(batch)
    context.drop(0)
    if status is not DecodeStatus.OK:
        raise LlmrunError(MODEL_LOAD, f"{spec.name} fails its first step ({status.name})")


def _device_name() -> str:
    found = devices()
    best = next((d for d in found if d.kind in ("gpu", "igpu")), found[0] if found else None)
    return best.name if best else "CPU"
