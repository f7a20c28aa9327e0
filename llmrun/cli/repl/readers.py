"""Where messages come from: a person at a terminal, or the lines of a pipe."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from llmrun.cli.repl.lines import is_open, message

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings

PROMPT = ">>> "
CONTINUED = "... "


class Reader(Protocol):
    """Hands out one message at a time."""

    def read(self) -> str | None:
        """The next message; None at the end. A person's Ctrl-C is a KeyboardInterrupt."""


class PipeReader:
    """Messages from a stream that nobody types into."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def read(self) -> str | None:
        text = ""
        while self._stream is not None and (line := self._stream.readline()):
            text += line.removesuffix("\n")
            if not is_open(text):
                return message(text)
            text += "\n"
        return message(text) if text else None


class TerminalReader:
    """Messages that a person types, with editing, history (kept in the file `history`) and search."""

    def __init__(self, history: Path) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.history import FileHistory

        history.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(history, os.O_CREAT | os.O_APPEND, 0o600))  # nobody else's business
        self._session: PromptSession[str] = PromptSession(
            history=FileHistory(history),
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation=CONTINUED,
        )

    def read(self) -> str | None:
        try:
            return message(self._session.prompt(PROMPT))
        except EOFError:
            return None


def _keys() -> KeyBindings:
    """Enter sends a message that is complete and opens a new line in one that is not; Alt-Enter always
    opens one."""
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if is_open(buffer.text):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: KeyPressEvent) -> None:
        event.current_buffer.insert_text("\n")

    return keys
