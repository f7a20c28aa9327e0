"""The ways to a model's bytes, one module each, behind one interface (`base`)."""

from __future__ import annotations

from llmrun.store.reference import (
    FileRef,
    HubRef,
    ModelScopeRef,
    NameRef,
    OllamaRef,
    PypiRef,
    Reference,
    UrlRef,
)
from llmrun.store.transports import hf, https, local, modelscope, ollama, pypi
from llmrun.store.transports.base import Fetched, Offer, RemoteFile

__all__ = ["Fetched", "Offer", "RemoteFile", "offer_of"]


def offer_of(reference: Reference) -> Offer:
    """What the source `reference` would give. A bare name is no source: the store looks it up first."""
    match reference:
        case HubRef():
            return hf.offer(reference)
        case ModelScopeRef():
            return modelscope.offer(reference)
        case OllamaRef():
            return ollama.offer(reference)
        case UrlRef():
            return https.offer(reference)
        case PypiRef():
            return pypi.offer(reference)
        case FileRef():
            return local.offer(reference)
        case NameRef():
            raise ValueError(f"{reference} is a name, not a source")
