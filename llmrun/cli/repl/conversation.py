"""What has been said and set in one chat. Pure: it sends nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from llmrun.types import Message, Options


@dataclass
class Conversation:
    """The turns so far, a system prompt apart from them, and the options for what comes next."""

    model: str
    system: str | None = None
    options: Options = field(default_factory=Options)
    think: bool | None = None
    turns: list[Message] = field(default_factory=list)

    def asking(self, text: str) -> list[Message]:
        """The messages that ask `text` as the next turn. Nothing is recorded yet."""
        head = [Message(role="system", content=self.system)] if self.system else []
        return [*head, *self.turns, Message(role="user", content=text)]

    def record(self, question: str, answer: str) -> None:
        """Keep a turn and its answer; one with no answer at all never happened."""
        if answer:
            self.turns.append(Message(role="user", content=question))
            self.turns.append(Message(role="assistant", content=answer))

    def clear(self) -> None:
        """Forget what was said; the system prompt and the options stay."""
        self.turns.clear()

    def set(self, options: Options) -> None:
        """Lay these options over the present ones."""
        self.options = options.over(self.options)

    def unset(self, name: str) -> None:
        """Let the model decide option `name` again."""
        default = () if name == "stop" else None
        self.options = msgspec.structs.replace(self.options, **{name: default})
