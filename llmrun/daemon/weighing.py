"""What a model will hold in memory once it is loaded, planned from the headers of its files."""

from __future__ import annotations

from collections.abc import Callable

from llmrun.daemon.room import available_memory
from llmrun.errors import LlmrunError
from llmrun.runner.frames import Load
from llmrun.store import StoredModel
from llmrun.store.anatomy import Anatomy, anatomy
from llmrun.store.hardware import Machine, built_for_gpu, cpu_features
from llmrun.store.peeking import peek_at
from llmrun.store.plan import Company, automatic_context, kv_of_all, plan, streams
from llmrun.store.quants import expected_memory


class Weigher:
    """Reads a model's headers when its content is new. Any thread; two at once may both read."""

    def __init__(self, available: Callable[[], int] = available_memory) -> None:
        self._available = available
        self._known: dict[str, tuple[str, Anatomy, Company]] = {}

    def weigh(self, model: StoredModel, load: Load, version: str) -> int:
        """Bytes of main memory for `load`. A file that cannot be read counts by its size: its runner will
        say what is wrong with it."""
        try:
            sizes, company = self._sizes(model, version)
        except LlmrunError:
            return expected_memory(model.size)
        free = self._available()
        machine = Machine(available=free, total=free, features=cpu_features())
        caches = streams(sizes, load.kv_layout, load.parallel)
        ctx = load.ctx or automatic_context(sizes, load.kv_type, model.ctx_train, free, company.draft, caches)
        return plan(sizes, machine, ctx, load.kv_type, company, caches).held

    def cache(self, model: StoredModel, load: Load, version: str) -> int:
        """Bytes of main memory for the KV cache of the context that `load` names. 0 where it names none, it
        may lie in a GPU's memory, or the file cannot be read: its runner will say."""
        if load.ctx is None or (built_for_gpu() and load.gpu_layers != 0):
            return 0
        try:
            sizes, company = self._sizes(model, version)
        except LlmrunError:
            return 0
        caches = streams(sizes, load.kv_layout, load.parallel)
        return kv_of_all(sizes, load.ctx, load.kv_type, company.draft, caches)

    def _sizes(self, model: StoredModel, version: str) -> tuple[Anatomy, Company]:
        known = self._known.get(model.name)
        if known is None or known[0] != version:
            peek = peek_at(model)
            known = self._known[model.name] = (version, anatomy(peek.headers), peek.company)
        return known[1], known[2]
