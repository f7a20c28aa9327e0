"""A stored model as JSON and as words: the same fields in every command that shows one."""

from __future__ import annotations

from typing import Any

import msgspec

from llmrun.store import StoredModel


def model_record(model: StoredModel) -> dict[str, Any]:
    """What `list` and `show` know of a model, ready for JSON. Bytes, tokens, ISO 8601."""
    return {
        "name": model.name,
        "size": model.size,
        "quant": model.quant,
        "parameters": model.parameters,
        "context": model.ctx_train,
        "source": model.source,
        "modified": model.modified.isoformat(),
        "architecture": model.architecture,
        "kind": model.kind,
        "license": model.license,
        "path": str(model.path),
        "files": [str(file) for file in model.files],
        "sha256": model.sha256,
        "in_place": model.in_place,
        "missing": model.missing,
        "options": msgspec.to_builtins(model.options),
        "system": model.system,
        "messages": msgspec.to_builtins(model.messages),
    }
