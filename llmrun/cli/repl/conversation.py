"""What has been said and set in one chat. Pure: it sends nothing."""

from __future__ import annotations

from dataclasses import dataclass, field

import msgspec

from llmrun.types import Message, Options


@dataclass
class Conversation:
    """The turns so far, a system prompt apart from them, and the options for what comes next.

    think       reasoning on or off; None as the model has it
    unanswered  the last question, where no answer to it has come
    attached    texts of files that go with the next question
    """

    model: str
    system: str | None = None
    options: Options = field(default_factory=Options)
    think: bool | None = None
    turns: list[Message] = field(default_factory=list)
    unanswered: str | None = None
    attached: list[str] = field(default_factory=list)

    def asking(self, text: str) -> list[Message]:
        """The messages that ask `text` as the next turn. Nothing is recorded yet."""
        return [*self.messages(), Message(role="user", content=text)]

    def messages(self) -> list[Message]:
        """All that was said and answered, the system prompt in front."""
        head = [Message(role="system", content=self.system)] if self.system else []
        return [*head, *self.turns]

    def record(self, question: str, answer: str, reasoning: str = "") -> None:
        """Keep a turn and its answer; one with no answer at all was not answered."""
        if not answer:
            self.unanswered = question
            return
        self.unanswered = None
        self.turns.append(Message(role="user", content=question))
        self.turns.append(Message(role="assistant", content=answer, reasoning=reasoning or None))

    def take_back(self) -> str | None:
        """Forget the last question and its answer, if it has one. The question; None where there is none."""
        if self.unanswered is not None:
            question, self.unanswered = self.unanswered, None
            return question
        if not self.turns:
            return None
        *self.turns, question_turn, _ = self.turns
        return question_turn.content

    def clear(self) -> None:
        """Forget what was said; the system prompt and the options stay."""
        self.turns.clear()
        self.attached.clear()
        self.unanswered = None

    def set(self, options: Options) -> None:
        """Lay these options over the present ones."""
        self.options = options.over(self.options)

    def unset(self, name: str) -> None:
        """Let the model decide option `name` again."""
        default = () if name == "stop" else None
        self.options = msgspec.structs.replace(self.options, **{name: default})
