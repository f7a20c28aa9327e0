"""Which model a request means: llama-server has one, so most of its clients name none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from llmrun.api.ports import Service
from llmrun.config import DEFAULT_MODEL
from llmrun.errors import INVALID_REQUEST, LlmrunError

if TYPE_CHECKING:
    from llmrun.store import StoredModel


async def chosen(service: Service, name: str | None, kind: str = "") -> StoredModel:
    """The model called `name`; without a name the only one loaded, else the default one, else the only one
    there is. INVALID_REQUEST where more than one is left, UNKNOWN_MODEL where there is none.

    kind  of the models here, those of this kind come into question, if there are any
    """
    if name:
        return await service.model(name)
    loaded = service.loaded()
    if len(loaded) == 1 and not kind:
        return await service.model(loaded[0].name)
    stored = [model for model in await service.models() if not model.missing]
    if fitting := [model for model in stored if model.kind == kind]:
        stored = fitting
    loaded = [model for model in loaded if any(model.name == other.name for other in stored)]
    if len(loaded) == 1:
        return await service.model(loaded[0].name)
    for model in stored:
        if model.name == DEFAULT_MODEL or len(stored) == 1:
            return model
    if not stored:
        return await service.model(DEFAULT_MODEL)
    raise LlmrunError(
        INVALID_REQUEST,
        f"no model is named, and {len(loaded) or 'none'} of the {len(stored)} models here"
        f" {'are' if loaded else 'is'} loaded",
        hint='say which: "model": "NAME"',
        field="model",
    )


def window(service: Service, name: str) -> int | None:
    """Tokens of context that a model is loaded with; None while it is not."""
    infos = [model.info for model in service.loaded() if model.name == name and model.info]
    return infos[0].ctx if infos else None
