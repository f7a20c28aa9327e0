"""Frames of a runner that says little: what a test does not name is small and plain."""

from __future__ import annotations

from typing import Any

from llmrun.runner.frames import ModelInfo
from llmrun.types import Stats


def model_info(**given: Any) -> ModelInfo:
    plain = {
        "ctx": 4096, "ctx_train": 8192, "parallel": 2, "vocab": 1000, "params": 1_000_000, "size": 100,
        "kv_bytes": 10, "device": "CPU", "description": "fake",
    }  # fmt: skip
    return ModelInfo(**{**plain, **given})


def stats(**given: Any) -> Stats:
    return Stats(**given)
