"""Whether a model fits this machine's memory, in one line, before any of it is here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from llmrun.errors import LlmrunError
from llmrun.store.disk import human

if TYPE_CHECKING:
    from llmrun.config import Settings
    from llmrun.store import Store

_SMALLEST = 512  # tokens: with less no model is of use


def memory(store: Store, reference: str, settings: Settings) -> dict[str, Any]:
    """`fits`, `context` (the largest that fits), `needed` and `available` bytes; or `unknown`, why not."""
    from llmrun.store.anatomy import anatomy
    from llmrun.store.hardware import this_machine
    from llmrun.store.plan import largest_context, plan, streams

    try:
        peek = store.peek(reference)
    except LlmrunError as error:
        return {"unknown": error.message}
    sizes, machine = anatomy(peek.headers), this_machine()
    most = settings.ctx or peek.model.ctx_train or _SMALLEST
    kind, caches = settings.kv_type, streams(sizes, settings.kv_layout, settings.parallel)
    context = largest_context(sizes, machine, kind, most, peek.company, caches)
    smallest = context or min(most, _SMALLEST)
    needed = plan(sizes, machine, smallest, kind, peek.company, caches).held
    return {"fits": context > 0, "context": context, "needed": needed, "available": machine.available}


def memory_line(found: Mapping[str, Any]) -> str:
    """What `memory` found, in words."""
    if why := found.get("unknown"):
        return f"not known: {why}"
    needed, available = human(found["needed"]), human(found["available"])
    if not found["fits"]:
        return f"does not fit: {needed} needed, {available} free; take a smaller quant"
    return f"fits: {needed} of {available} free, with a context of {found['context']} tokens"
