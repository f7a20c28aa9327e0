"""What the scheduler asks of the memory of sequences; the context implements it, tests record it."""

from __future__ import annotations

from typing import Protocol

SavedState = bytes | memoryview
"""A sequence's KV as llama.cpp saves it. Tens of megabytes, and memory that is new to a process is dear: it
stays where llama.cpp wrote it."""


class KVMemory(Protocol):
    """The context's memory of sequences by slot (see `llmrun.llama.Context`)."""

    def drop(self, slot: int) -> None: ...
    def trim(self, slot: int, length: int) -> bool: ...
    def share(self, source: int, target: int, length: int) -> None: ...
    def save(self, slot: int) -> SavedState: ...
    def restore(self, slot: int, state: SavedState) -> bool: ...
