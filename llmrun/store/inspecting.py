"""Whether the files of a model are what they are said to be, told from their headers."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.adapters import adapter_fault
from llmrun.store.companions import Role, fits_role
from llmrun.store.facts import Facts, facts_of
from llmrun.store.gguf import GGUFHeader, read_header


def inspect(files: Sequence[tuple[Path, Role]]) -> Facts:
    """What the weights among `files` say, in their order. BAD_FILE where another does not fit them."""
    headers = [(read_header(path), path, role) for path, role in files]
    weights = [(header, path) for header, path, role in headers if role == "weights"]
    facts = facts_of([header for header, _ in weights], weights[0][1])
    for header, path, role in headers:
        if fault := _fault(header, role, [header for header, _ in weights]):
            raise LlmrunError(BAD_FILE, f"{path} cannot be the model's {role}: {fault}", hint=_HINTS[role])
    return facts


_HINTS: dict[Role, str] = {
    "weights": "",
    "projector": "tell the model's publisher",
    "adapter": "name a LoRA that was trained for this model, in GGUF",
    "draft": "name a model that writes text",
}


def _fault(header: GGUFHeader, role: Role, weights: Sequence[GGUFHeader]) -> str | None:
    match role:
        case "weights":
            return None
        case "adapter":
            return adapter_fault(header, weights)
        case _:
            return None if fits_role(header, role) else f"it is no {role}"
