"""The responses that can be gone on from: kept in memory, for a bounded time, in bounded number and size.

Pure: whoever asks says what time it is, in seconds of any one clock.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import msgspec

from llmrun.api.oneline import Json
from llmrun.errors import INVALID_REQUEST, NOT_FOUND, LlmrunError
from llmrun.types import Message

MAX_AGE = 24 * 3600.0
MAX_COUNT = 1000
MAX_SIZE = 64 * 2**20
"""Bytes of all kept responses, and characters of their conversations; what several share counts for each."""


@dataclass(frozen=True)
class Kept:
    """A response as it was answered, as JSON, and the conversation up to its end; `owner`: who asked."""

    response: bytes
    messages: tuple[Message, ...]
    owner: str
    kept_at: float

    @property
    def size(self) -> int:
        return len(self.response) + sum(
            len(m.content) + len(m.reasoning or "") + sum(len(call.arguments) for call in m.tool_calls)
            for m in self.messages
        )


class KeptResponses:
    """By id, the oldest first. Used from one thread. `owner` is who asks: nobody finds what others asked."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, Kept] = OrderedDict()
        self._size = 0

    def keep(
        self, response_id: str, response: Json, messages: tuple[Message, ...], owner: str, now: float
    ) -> None:
        """Keep a response; older ones go where there is no room beside it."""
        kept = Kept(msgspec.json.encode(response), messages, owner, now)
        self._kept[response_id] = kept
        self._size += kept.size
        while len(self._kept) > MAX_COUNT or self._size > MAX_SIZE:
            self._forget(next(iter(self._kept)))

    def response(self, response_id: str, owner: str, now: float) -> bytes:
        """The response of that id, as JSON. LlmrunError NOT_FOUND."""
        kept = self._find(response_id, owner, now)
        if kept is None:
            raise LlmrunError(NOT_FOUND, f"there is no stored response {response_id[:80]!r}", hint=_HINT)
        return kept.response

    def conversation(self, response_id: str, owner: str, now: float) -> tuple[Message, ...]:
        """The turns to go on from. LlmrunError INVALID_REQUEST, which names `previous_response_id`."""
        kept = self._find(response_id, owner, now)
        if kept is None:
            field = "previous_response_id"
            message = f"{field} is {response_id[:80]!r}, which is no stored response"
            raise LlmrunError(INVALID_REQUEST, message, hint=_HINT, field=field)
        return kept.messages

    def remove(self, response_id: str, owner: str, now: float) -> None:
        """Forget a response. LlmrunError NOT_FOUND."""
        self.response(response_id, owner, now)
        self._forget(response_id)

    def _find(self, response_id: str, owner: str, now: float) -> Kept | None:
        while self._kept and now - next(iter(self._kept.values())).kept_at > MAX_AGE:
            self._forget(next(iter(self._kept)))
        kept = self._kept.get(response_id)
        return kept if kept and kept.owner == owner else None

    def _forget(self, response_id: str) -> None:
        self._size -= self._kept.pop(response_id).size


_HINT = (
    f"the newest {MAX_COUNT} are kept in memory, for {MAX_AGE / 3600:.0f} hours and until the daemon ends;"
    " send the whole conversation as input"
)
