"""What `--quants` names: the same model in other number types, or other models."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from llmrun.cli.reach import obtain
from llmrun.cli.session import Session
from llmrun.errors import INVALID_REQUEST, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store, StoredModel
from llmrun.store.quantizing import default_name, type_of
from llmrun.store.reference import RepoRef, parse_reference


def resolve(session: Session, model: str, quants: Sequence[str]) -> list[StoredModel]:
    """The model and those that `quants` name, each once. A number type means the repository's file of that
    type where the model is a hub's, else what `llmrun quantize` calls it. What is not here is pulled."""
    store = Store(session.paths)
    found = [store.resolve(obtain(session, model))]
    for quant in quants:
        one = _named(session, store, model, found[0].name, quant)
        if all(one.path != other.path for other in found):
            found.append(one)
    return found


def _named(session: Session, store: Store, model: str, name: str, quant: str) -> StoredModel:
    try:
        kind = type_of(quant)
    except LlmrunError as error:
        if error.kind is not INVALID_REQUEST:
            raise
        return store.resolve(obtain(session, quant))  # no number type: a model
    reference = parse_reference(model)
    if isinstance(reference, RepoRef):
        return store.resolve(obtain(session, str(replace(reference, quant=kind, file=None))))
    try:
        return store.resolve(default_name(name, kind))
    except LlmrunError as error:
        if error.kind is not UNKNOWN_MODEL:
            raise
        raise LlmrunError(
            UNKNOWN_MODEL, f"{name} is not here as {kind}", hint=f"make it: llmrun quantize {name} {kind}"
        ) from None
