"""From a file to a model in memory, which holds its weights once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from llmrun.llama import Model
from llmrun.llama.mapped import Parts
from llmrun.runner.meanwhile import beside
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
    features = cpu_features()

    def read() -> tuple[list[GGUFHeader], Parts]:
        headers = [read_header(file) for file in files]
        return headers, {file: copied(header, features) for file, header in zip(files, headers, strict=True)}

    with beside(read) as reading:

        def parts() -> Parts:
            return {} if reading.exception() else reading.result()[1]  # an error is told below

        # Meanwhile llama.cpp reads the vocabulary; it asks for the parts only once it places weights.
        model = Model(path, gpu_layers=gpu_layers, on_progress=on_progress, copied=parts)
    try:
        return model, reading.result()[0]
    except BaseException:
        model.close()
        raise
