"""Whether a model's context computes attention in one pass (flash attention)."""

from __future__ import annotations

from llmrun.runner.frames import Load


def flash_attention(spec: Load) -> bool | None:
    """As `spec` wants it; None leaves it to llama.cpp."""
    return {"on": True, "off": False}.get(spec.flash_attention)
