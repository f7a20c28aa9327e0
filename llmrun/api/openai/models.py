"""The entries of `/v1/models`: a stored model, and how it is loaded, as OpenAI's model object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmrun.api.oneline import Json

if TYPE_CHECKING:
    from llmrun.daemon.pool import LoadedModel
    from llmrun.store import StoredModel


def model_card(model: StoredModel, loaded: Sequence[LoadedModel]) -> Json:
    """One entry. `meta` is ours: `n_ctx` is the window it is loaded with, null while it is not loaded."""
    infos = [other.info for other in loaded if other.name == model.name and other.info]
    return {
        "id": model.name,
        "object": "model",
        "created": int(model.modified.timestamp()),
        "owned_by": "llmrun",
        "meta": {
            "loaded": bool(infos),
            "n_ctx": infos[0].ctx if infos else None,
            "n_ctx_train": model.ctx_train,
            "n_params": model.parameters,
            "size": model.size,
            "architecture": model.architecture,
            "quant": model.quant,
            "kind": model.kind,
            "license": model.license,
            "source": model.source,
        },
    }


def model_list(models: Sequence[StoredModel], loaded: Sequence[LoadedModel]) -> Json:
    return {"object": "list", "data": [model_card(model, loaded) for model in models]}
