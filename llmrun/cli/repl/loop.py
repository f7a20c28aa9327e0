"""The chat itself: read a message, do it or ask it, show the answer, again."""

from __future__ import annotations

import sys

from llmrun.cli.answering import show
from llmrun.cli.output import Output, is_terminal
from llmrun.cli.reach import Reached, reach
from llmrun.cli.repl import slash
from llmrun.cli.repl.conversation import Conversation
from llmrun.cli.repl.readers import PipeReader, Reader, TerminalReader
from llmrun.cli.session import Session
from llmrun.errors import LlmrunError
from llmrun.types import Options


def chat(
    session: Session, model: str, *, system: str | None, options: Options, think: bool | None, local: bool
) -> None:
    """Talk until the person leaves or the pipe ends."""
    out = session.out
    with reach(session, model, local=local) as there:
        with there.client():
            pass  # a daemon that cannot be had is reported before anything is typed
        interactive = is_terminal(sys.stdin) and out.on_terminal
        reader: Reader = PipeReader(sys.stdin)
        if interactive:
            reader = TerminalReader(session.paths.state / "chat_history")
            out.note(f"{model}. /help shows what you can type, Ctrl-D leaves.")
        Loop(out, Conversation(model, system, options, think), there, reader, interactive).run()


class Loop:
    """One chat. A person is told of an error or a Ctrl-C and goes on; a pipe ends there."""

    def __init__(
        self, out: Output, conversation: Conversation, there: Reached, reader: Reader, interactive: bool
    ) -> None:
        self._out = out
        self._conversation = conversation
        self._there = there
        self._reader = reader
        self._interactive = interactive

    def run(self) -> None:
        """Until the end of input or /bye."""
        while self._step():
            pass

    def _step(self) -> bool:
        try:
            text = self._reader.read()
            if text is None:
                return False
            if command := slash.parse(text):
                slash.execute(self._conversation, self._out, *command)
            elif text.strip():
                self._ask(text)
        except slash.Bye:
            return False
        except KeyboardInterrupt:
            if not self._interactive:
                raise
            self._out.note("(Ctrl-D or /bye leaves)")
        except LlmrunError as error:
            if not self._interactive:
                raise
            self._out.error(error)
        return True

    def _ask(self, text: str) -> None:
        try:
            self._answer(text)
        except KeyboardInterrupt:
            if not self._interactive:
                raise
            self._out.note("(stopped)")

    def _answer(self, text: str) -> None:
        """Show the answer. What was said of one that is cut short counts as said."""
        conversation = self._conversation
        with self._there.client() as client:
            with self._out.waiting("…"):
                answer = client.chat(
                    self._there.model,
                    conversation.asking(text),
                    conversation.options,
                    think=conversation.think,
                )
            with answer:
                try:
                    show(self._out, answer, thoughts=self._interactive)
                finally:
                    conversation.record(text, answer.text)
