"""Events of an answer to content blocks: each begins, grows and ends before the next one begins. Pure."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Literal

from llmrun.api.arguments import partial_object
from llmrun.api.oneline import Json
from llmrun.types import CallArguments, CallStarted, Event, Reasoning, Text

Kind = Literal["text", "thinking", "tool_use"]

_GROWS: dict[Kind, tuple[str, str]] = {
    "text": ("text_delta", "text"),
    "thinking": ("thinking_delta", "thinking"),
    "tool_use": ("input_json_delta", "partial_json"),
}
"""The type of a block's delta, and the field that has the text."""


@dataclass
class Block:
    """One block, the answer's `index`-th from 0. `call` is there in a tool's; `pieces` are its text, a
    call's arguments as JSON."""

    index: int
    kind: Kind
    call: CallStarted | None = None
    pieces: list[str] = field(default_factory=list)

    def empty(self) -> Json:
        """As it begins."""
        if self.call is not None:
            return {"type": "tool_use", "id": self.call.id, "name": self.call.name, "input": {}}
        if self.kind == "thinking":
            return {"type": "thinking", "thinking": "", "signature": ""}
        return {"type": "text", "text": ""}

    def delta(self, text: str) -> Json:
        kind, name = _GROWS[self.kind]
        return {"type": kind, name: text}

    def signature(self) -> str:
        """What stands where Anthropic signs thinking: clients keep it with the text, nobody checks it."""
        return hashlib.sha256("".join(self.pieces).encode()).hexdigest()

    def whole(self, shows_thinking: bool) -> Json:
        """As it ended; of arguments that the length limit cut, what is complete. `shows_thinking`: else
        thinking comes without its text."""
        text = "".join(self.pieces)
        if self.kind == "tool_use":
            return {**self.empty(), "input": partial_object(text)}
        if self.kind == "thinking":
            shown = text if shows_thinking else ""
            return {**self.empty(), "thinking": shown, "signature": self.signature()}
        return {**self.empty(), "text": text}


class Blocks:
    """The blocks of one answer, in order."""

    def __init__(self) -> None:
        self.all: list[Block] = []

    def grow(self, event: Event) -> tuple[Block, str] | None:
        """The block that the event adds to, which may be a new one, and the text it adds. None: no block."""
        if isinstance(event, CallStarted):
            self.all.append(Block(len(self.all), "tool_use", event))
            return self.all[-1], ""
        if isinstance(event, Text):
            return self._add("text", event.text)
        if isinstance(event, Reasoning):
            return self._add("thinking", event.text)
        return self._add("tool_use", event.text) if isinstance(event, CallArguments) else None

    def _add(self, kind: Kind, text: str) -> tuple[Block, str] | None:
        if not text:
            return None
        if not self.all or self.all[-1].kind != kind:
            self.all.append(Block(len(self.all), kind))
        self.all[-1].pieces.append(text)
        return self.all[-1], text
