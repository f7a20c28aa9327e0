"""From a file to a model in memory, which holds its weights once."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress
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
    with beside(lambda: [read_header(file) for file in files]) as reading:

        @functools.cache
        def parts() -> Parts:
            # Called by llama.cpp, which would take an error of ours for its own.
            with suppress(Exception):
                return {
                    file: copied(header, features)
                    for file, header in zip(files, reading.result(), strict=False)
                }
            return {}

        # llama.cpp reads the vocabulary before it puts anything anywhere.
        model = Model(path, gpu_layers=gpu_layers, on_progress=on_progress, copied=parts)
    try:
        return model, reading.result()
    except BaseException:
        model.close()
        raise
