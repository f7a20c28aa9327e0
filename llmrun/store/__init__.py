"""The model store: what models there are, where they come from, what their files say."""

from __future__ import annotations

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
