"""From a Load frame to a warm model: weights, context, engine, prompter."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil

from llmrun.chat.prompt import Prompter
from llmrun.engine import Engine, Grammars
from llmrun.engine.engine import Emit
from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama import (
    Adapter,
    Batch,
    Context,
    ContextSettings,
    DecodeStatus,
    Model,
    devices,
    guide_tokenizer,
)
from llmrun.runner.frames import Load, ModelInfo
from llmrun.runner.kv_cache import saved_prefixes
from llmrun.runner.sizing import sizes
from llmrun.store.anatomy import anatomy
from llmrun.store.gguf import read_header
from llmrun.store.plan import BATCH
from llmrun.store.quants import shard_siblings


@dataclass(frozen=True)
class Loaded:
    """A model ready to work. `model.close()` frees all of it, once the engine has ended."""

    model: Model
    engine: Engine
    prompter: Prompter
    grammars: Grammars
    info: ModelInfo


def _cores() -> int:
    """Cores that this process may use; two threads of one core do not compute twice as fast."""
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(usable, psutil.cpu_count(logical=False) or usable)


def load(spec: Load, emit: Emit, on_progress: Callable[[float], None]) -> Loaded:
    """Load the model and decode one token, so that a file that cannot run fails here.

    Raises MODEL_LOAD or NO_MEMORY.
    """
    path = Path(spec.path)
    model = Model(path, gpu_layers=spec.gpu_layers, on_progress=on_progress)
    try:
        return _prepare(spec, path, model, emit)
    except BaseException:
        model.close()
        raise


def _prepare(spec: Load, path: Path, model: Model, emit: Emit) -> Loaded:
    if reason := model.unservable:
        raise LlmrunError(MODEL_LOAD, f"{spec.name} {reason}", hint="use a decoder-only chat model")
    shards = [path.with_name(name) for name in shard_siblings(path.name)]
    shape = anatomy([read_header(shard) for shard in shards])
    chosen = sizes(
        spec,
        shape,
        ctx_train=model.ctx_train,
        trimmable=model.trimmable,
        memory=psutil.virtual_memory().available,
        gpu_memory=sum(device.memory_free for device in devices() if device.kind == "gpu"),
        cores=_cores(),
    )
    adapters = [Adapter(model, Path(path)) for path in spec.adapters]
    context = Context(
        model,
        ContextSettings(
            ctx=chosen.ctx,
            batch=BATCH,
            slots=chosen.slots,
            threads=chosen.threads,
            threads_batch=chosen.threads,
            kv_type=spec.kv_type,
        ),
        adapters,
    )
    _warm_up(spec, context)
    template = spec.template or model.chat_template
    engine = Engine(
        context,
        batch=BATCH,
        parallel=chosen.parallel,
        emit=emit,
        clock=time.monotonic,
        saved=saved_prefixes(spec, trimmable=model.trimmable),
    )
    prompter = Prompter(template, model.vocab)
    return Loaded(
        model=model,
        engine=engine,
        prompter=prompter,
        grammars=Grammars(functools.partial(guide_tokenizer, model.vocab)),
        info=ModelInfo(
            ctx=context.ctx,
            ctx_train=model.ctx_train,
            parallel=chosen.parallel,
            vocab=model.vocab.size,
            params=model.parameters,
            size=model.size,
            kv_bytes=shape.kv_bytes(context.ctx, spec.kv_type),
            device=_device_name(),
            description=model.description,
            has_template=template is not None,
            adapters=len(adapters),
        ),
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
