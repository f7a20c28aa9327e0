"""A model told as the Modelfile that makes it anew. Pure."""

from __future__ import annotations

from llmrun.store.model import StoredModel
from llmrun.store.modelfile import Modelfile
from llmrun.store.reference import parse_reference


def modelfile_of(model: StoredModel) -> Modelfile:
    """All that can be said of `model`, its weights pinned. What came with them is not named apart."""
    others = model.sources if model.sha256 else ()  # without a digest nothing says that they are the same
    return Modelfile(
        sources=tuple(map(parse_reference, dict.fromkeys((model.source, *others)))),
        sha256=model.sha256,
        size=model.size - sum(one.size for one in model.named),
        options=model.options,
        template=model.template,
        system=model.system,
        messages=model.messages,
        license=model.license,
        adapters=tuple(parse_reference(one.source) for one in model.adapters if one.source),
        draft=parse_reference(model.draft.source) if model.draft and model.draft.source else None,
    )
