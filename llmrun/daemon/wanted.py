"""A model as a request wants it."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from llmrun.runner.frames import Load, ModelInfo


@dataclass(frozen=True)
class Wanted:
    """What to load, which bytes those are, and what they take.

    load        the runner's first frame; its `name` is the model's
    version     changes whenever the content of the file does
    cost        bytes of main memory that it is planned to hold
    keep_alive  seconds that the runner stays once it is idle; None leaves that as it is
    cache       bytes of main memory for the KV cache of a context that somebody chose; 0 for one that is made
                to fit
    """

    load: Load
    version: str
    cost: int
    keep_alive: float | None = field(default=None, compare=False)
    cache: int = field(default=0, compare=False)

    @property
    def name(self) -> str:
        return self.load.name

    def served_by(self, other: Wanted, info: ModelInfo | None) -> bool:
        """Whether a runner loaded for `other` will do; `info` is what it became, None while loading.

        All must be equal but the context, which may be larger than wanted: one client's larger context
        then serves everyone, where an exact match would load the model anew at every turn. A context of
        None is the most the runner can give, so a smaller one will not do. What cannot be known while
        loading counts as will do; ask again when it is loaded.
        """
        if other.version != self.version or _apart_from_ctx(other.load) != _apart_from_ctx(self.load):
            return False
        wanted, loaded = self.load.ctx, other.load.ctx
        if wanted == loaded:
            return True
        if wanted is not None and loaded is not None:
            return loaded >= wanted
        return info is None or info.ctx >= (info.ctx_train if wanted is None else wanted)


def _apart_from_ctx(load: Load) -> Load:
    return msgspec.structs.replace(load, ctx=None)
