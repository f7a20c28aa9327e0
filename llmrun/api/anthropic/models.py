"""The entries of `/v1/models` as Anthropic's clients read them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from llmrun.api.oneline import Json

if TYPE_CHECKING:
    from llmrun.store import StoredModel


def model_info(model: StoredModel) -> Json:
    """One entry. `max_input_tokens` is the context that the model was trained with."""
    return {
        "type": "model",
        "id": model.name,
        "display_name": model.name,
        "created_at": model.modified.isoformat().replace("+00:00", "Z"),
        "lifecycle": "active",
        "max_input_tokens": model.ctx_train,
        "max_tokens": model.ctx_train,
    }


def model_page(models: Sequence[StoredModel]) -> Json:
    """All entries, as the one page there is."""
    data = [model_info(model) for model in models]
    return {
        "data": data,
        "has_more": False,
        "first_id": data[0]["id"] if data else None,
        "last_id": data[-1]["id"] if data else None,
    }
