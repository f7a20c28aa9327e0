"""What every key used: counted by the daemon, kept on disk, shown by `llmrun keys list` and `/metrics`."""

from __future__ import annotations

from pathlib import Path

import msgspec

from llmrun.access.limiter import day_of
from llmrun.config import Paths
from llmrun.store.disk import write_atomic


class KeyUsage(msgspec.Struct, kw_only=True):
    """Since the key was created; `day_tokens` are those of day number `day`. `last_used` in unix seconds."""

    requests: int = 0
    prompt_tokens: int = 0
    completion_tokens: int = 0
    day: int = 0
    day_tokens: int = 0
    last_used: float = 0.0

    def tokens_on(self, day: int) -> int:
        """Tokens used on that day so far."""
        return self.day_tokens if self.day == day else 0


class UsageLog:
    """Usage by key id. Used from one thread; `save` may be called from another with what `snapshot` gave."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._usage = _read(path)
        self.changed = False

    @classmethod
    def of(cls, paths: Paths) -> UsageLog:
        """The usage kept in a user's data folder. A damaged file counts as none."""
        return cls(paths.state / "key-usage.json")

    def used(self, id: str) -> KeyUsage:
        """What a key used; zeros where nothing is known of it."""
        return self._usage.get(id) or KeyUsage()

    def add(self, id: str, now: float, *, requests: int = 0, prompt: int = 0, completion: int = 0) -> None:
        """Count; `now` in unix seconds."""
        usage = self._usage.setdefault(id, KeyUsage())
        day = day_of(now)
        usage.day_tokens = usage.tokens_on(day) + prompt + completion
        usage.day, usage.last_used = day, now
        usage.requests += requests
        usage.prompt_tokens += prompt
        usage.completion_tokens += completion
        self.changed = True

    def snapshot(self) -> bytes:
        """The content of the file as it should be now."""
        self.changed = False
        return msgspec.json.encode(self._usage)

    def save(self, snapshot: bytes) -> None:
        """Write it, whole or not at all. OSError."""
        write_atomic(self._path, snapshot)


def _read(path: Path) -> dict[str, KeyUsage]:
    try:
        return msgspec.json.decode(path.read_bytes(), type=dict[str, KeyUsage])
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return {}
