"""The contexts that a model makes vectors in, as this machine has room for them."""

from __future__ import annotations

from collections.abc import Sequence

import psutil

from llmrun.engine import Embedder
from llmrun.errors import MODEL_LOAD, NO_MEMORY, LlmrunError
from llmrun.llama import Adapter, EmbeddingContext, Model, Tokens, Vector
from llmrun.runner.frames import Load
from llmrun.runner.machine import cores, gpu_memory
from llmrun.runner.passing_thread import on_passing_thread
from llmrun.store.anatomy import Anatomy
from llmrun.store.plan import embedding_bytes


def open_embedding(
    spec: Load, model: Model, shape: Anatomy, adapters: Sequence[Adapter], tokens: int
) -> EmbeddingContext:
    """A context for inputs of `tokens` tokens. NO_MEMORY where it would not fit: llama.cpp would try."""
    needed = embedding_bytes(shape, tokens, last_row=model.pools_last_row)
    free = psutil.virtual_memory().available + gpu_memory()
    if needed > free:
        raise LlmrunError(
            NO_MEMORY,
            f"inputs of up to {tokens} tokens need {needed / 1e9:.1f} GB, but {free / 1e9:.1f} GB are free",
            hint="send shorter inputs",
        )
    return EmbeddingContext(model, tokens, spec.threads or cores(), adapters)


def embed_apart(context: EmbeddingContext, inputs: list[Tokens]) -> list[Vector] | None:
    """`EmbeddingContext.embed` for a model whose engine computes too: it shall have the only team of threads
    (`llmrun.runner.passing_thread`)."""
    return on_passing_thread(lambda: context.embed(inputs))


def warm_up_embedder(name: str, embedder: Embedder) -> None:
    """Compute one token, so that a file that cannot run fails here."""
    try:
        embedder.warm_up()
    except RuntimeError as error:
        raise LlmrunError(MODEL_LOAD, f"{name} fails its first step: {error}") from None
