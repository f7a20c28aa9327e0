"""The ways to a model's bytes, one module each, behind one interface (`base`).

A transport is imported when it is asked: most commands need none, and their clients are slow to import.
"""

from __future__ import annotations

import importlib

from llmrun.store import network
from llmrun.store.reference import (
    FileRef,
    HubRef,
    ModelScopeRef,
    OllamaRef,
    PypiRef,
    Reference,
    UrlRef,
)
from llmrun.store.transports.base import Fetched, Offer, RemoteFile

__all__ = ["Fetched", "Offer", "RemoteFile", "offer_of"]

_MODULES = {
    HubRef: "hf",
    ModelScopeRef: "modelscope",
    OllamaRef: "ollama",
    UrlRef: "https",
    PypiRef: "pypi",
    FileRef: "local",
}


def offer_of(reference: Reference) -> Offer:
    """What the source `reference` would give. A bare name is no source: the store looks it up first."""
    name = _MODULES.get(type(reference))
    if name is None:
        raise ValueError(f"{reference} is a name, not a source")
    if not isinstance(reference, FileRef | HubRef):  # the Hub has a cache on this machine
        network.require(f"{reference} is not asked")
    offer: Offer = importlib.import_module(f"{__name__}.{name}").offer(reference)
    return offer
