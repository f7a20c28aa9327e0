"""The model store: what models there are, where they come from, what their files say."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from llmrun.store.blobs import Blobs
    from llmrun.store.catalogue import Catalogue
    from llmrun.store.describing import modelfile_of
    from llmrun.store.facts import special_tokens
    from llmrun.store.gguf import GGUFHeader, read_header
    from llmrun.store.model import StoredModel
    from llmrun.store.modelfile import Modelfile, format_modelfile, parse_modelfile
    from llmrun.store.progress import PullProgress
    from llmrun.store.reference import parse_name, parse_reference
    from llmrun.store.store import Removed, Store

__all__ = [
    "Blobs",
    "Catalogue",
    "GGUFHeader",
    "Modelfile",
    "PullProgress",
    "Removed",
    "Store",
    "StoredModel",
    "format_modelfile",
    "modelfile_of",
    "parse_modelfile",
    "parse_name",
    "parse_reference",
    "read_header",
    "special_tokens",
]

# A runner reads headers, and a starting daemon a few small files: neither waits for all the rest.
_HOME = {
    "Blobs": "blobs",
    "Catalogue": "catalogue",
    "GGUFHeader": "gguf",
    "Modelfile": "modelfile",
    "PullProgress": "progress",
    "Removed": "store",
    "Store": "store",
    "StoredModel": "model",
    "format_modelfile": "modelfile",
    "modelfile_of": "describing",
    "parse_modelfile": "modelfile",
    "parse_name": "reference",
    "parse_reference": "reference",
    "read_header": "gguf",
    "special_tokens": "facts",
}


def __getattr__(name: str) -> Any:
    """The store's words, each imported when it is first used."""
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value
