"""The files that belong to a model beside its weights: vision projectors, adapters, a draft model. Pure.

A publisher puts the projector into the model's repository under a name with `mmproj` in it; llama.cpp's
converter writes `clip` as its architecture. Adapters and drafts are named by a Modelfile or a registry.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath
from typing import Literal

from llmrun.store.gguf import GGUFHeader

Role = Literal["weights", "projector", "adapter", "draft"]

# Projectors are small and lose by coarse types, so half precision first.
_PRECISIONS = ("F16", "FP16", "BF16", "Q8_0", "F32", "FP32")


def projector_for(weights: str, names: Iterable[str]) -> str | None:
    """The projector among the files `names` of one model's repository that goes with `weights`, None where
    there is none: of those in the folder nearest to the weights, the one in the best precision."""
    folder = PurePosixPath(weights).parent
    beside = [
        name
        for name in sorted(names)
        if re.search(r"(?i)mmproj[^/]*\.gguf$", name)
        and PurePosixPath(name).parent in (folder, *folder.parents)
    ]
    return min(beside, key=lambda name: (-name.count("/"), _precision(name)), default=None)


def _precision(name: str) -> int:
    upper = name.upper()
    return next((i for i, kind in enumerate(_PRECISIONS) if re.search(rf"[-._]{kind}[-._]", upper)), 99)


def fits_role(header: GGUFHeader, role: Literal["projector", "draft"]) -> bool:
    """Whether a file with this header can be what `role` says (of adapters see `adapters`)."""
    if role == "projector":
        return header.text("general.architecture") == "clip" or header.text("general.type") == "mmproj"
    return header.text("general.type") not in ("adapter", "mmproj", "imatrix")
