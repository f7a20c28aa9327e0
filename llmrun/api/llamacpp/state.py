"""`/props` and `/slots`: a model and the places for its answers, as llama-server tells of them. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

import llmrun
from llmrun.api.llamacpp.settings import sampling_settings
from llmrun.api.oneline import Json
from llmrun.store.plan import ANSWERING

if TYPE_CHECKING:
    from llmrun.config import Settings
    from llmrun.daemon.pool import LoadedModel
    from llmrun.store import GGUFHeader, StoredModel


def props(model: StoredModel, header: GGUFHeader, loaded: LoadedModel | None, settings: Settings) -> Json:
    """What is known of a model. While it is not loaded, the numbers are those it would have at most."""
    info = loaded.info if loaded else None
    return {
        "default_generation_settings": {
            "params": sampling_settings(model.options),
            "n_ctx": info.ctx if info else model.options.ctx or settings.ctx or model.ctx_train,
        },
        "total_slots": info.parallel if info else settings.parallel or ANSWERING,
        "model_alias": model.name,
        "model_ftype": model.quant,
        "model_path": str(model.path),
        "modalities": {"vision": False, "video": False, "audio": False},
        "endpoint_slots": True,
        "endpoint_props": False,
        "endpoint_metrics": True,
        "chat_template": model.template or header.text("tokenizer.chat_template") or "",
        "build_info": f"llmrun {llmrun.__version__}",
        "is_sleeping": info is None,
    }


def lora_adapters(model: StoredModel) -> list[Json]:
    """The model's adapters. All count as they were trained, unless a request's `lora` says otherwise."""
    return [
        {"id": number, "path": str(adapter.path), "scale": 1.0}
        for number, adapter in enumerate(model.adapters)
    ]


def slots(loaded: LoadedModel | None) -> list[Json]:
    """The places of a loaded model; none of one that is not. Answers have no place of their own, so the
    first ones are those in use."""
    if loaded is None or loaded.info is None:
        return []
    running = loaded.stats.running if loaded.stats else 0
    return [
        {"id": number, "n_ctx": loaded.info.ctx, "speculative": False, "is_processing": number < running}
        for number in range(loaded.info.parallel)
    ]
