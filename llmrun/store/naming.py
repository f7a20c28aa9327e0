"""The short name a pulled model gets. Pure.

A catalogue model keeps the catalogue's name. Any other is named after its repository or its file: lower
case, without `-gguf`, the quant as the tag: `hf.co/Org/Some-Model-GGUF:Q4_K_M` becomes `some-model:Q4_K_M`.
Where that name belongs to another model already, the vendor comes before it (`org/some-model:Q4_K_M`), then
a number behind it (`some-model-2:Q4_K_M`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator

from llmrun.store.reference import MAX_NAME

_FOREIGN = re.compile(r"[^a-z0-9._-]+")


def short_name(wanted: str, vendor: str, taken: Callable[[str], bool]) -> str:
    """The first fitting name that is not `taken`. `wanted` is `MODEL` or `MODEL:QUANT` in any spelling."""
    return next(name for name in _candidates(wanted, vendor) if not taken(name))


def _candidates(wanted: str, vendor: str) -> Iterator[str]:
    model, _, quant = wanted.partition(":")
    tag = f":{quant}" if quant else ""
    base = _clean(model).removesuffix("-gguf")[: MAX_NAME // 2].rstrip("-._") or "model"
    yield base + tag
    if owner := _clean(vendor)[: MAX_NAME // 4]:
        yield f"{owner}/{base}{tag}"
    number = 2
    while True:
        yield f"{base}-{number}{tag}"
        number += 1


def _clean(text: str) -> str:
    return _FOREIGN.sub("-", text.lower()).strip("-._")
