"""From a file to a model in memory, which holds its weights once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llmrun.errors import LlmrunError
from llmrun.llama import Model
from llmrun.store.gguf import GGUFHeader, read_header
from llmrun.store.hardware import cpu_features
from llmrun.store.kernels import copied
from llmrun.store.quants import shard_siblings


def open_model(
    path: Path, gpu_layers: int | None, on_progress: Callable[[float], None] | None = None
) -> tuple[Model, list[GGUFHeader]]:
    """The model and the headers of its files. MODEL_LOAD where llama.cpp refuses it, else BAD_FILE where we
    cannot read a header."""
    files = [path.with_name(name) for name in shard_siblings(path.name)]
    headers: list[GGUFHeader] = []
    refusal = None
    try:
        headers += map(read_header, files)
    except LlmrunError as error:
        refusal = error
    features = cpu_features()
    parts = {file: copied(header, features) for file, header in zip(files, headers, strict=False)}
    model = Model(path, gpu_layers=gpu_layers, on_progress=on_progress, copied=parts)
    if refusal:
        model.close()
        raise refusal
    return model, headers
