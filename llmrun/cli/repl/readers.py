"""Where messages come from: a person at a terminal, or the lines of a pipe."""

from __future__ import annotations

import contextlib
import os
import termios
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TextIO

from llmrun.cli.repl.lines import is_open, message

if TYPE_CHECKING:
    from prompt_toolkit.key_binding import KeyBindings

    from llmrun.cli.repl.completion import Names

PROMPT = ">>> "
CONTINUED = "    "  # no mark: what is copied from the screen is what was typed
# Terminals put marks around what is pasted, once they are asked to; prompt_toolkit asks for itself only.
_MARK_PASTES, _LEAVE_PASTES = "\x1b[?2004h", "\x1b[?2004l"


@contextmanager
def unechoed(stream: TextIO) -> Iterator[None]:
    """What is typed meanwhile on the terminal `stream` does not appear in the middle of an answer; it waits
    for the next prompt, also lines that are pasted: as one message. Ctrl-C works."""
    before = termios.tcgetattr(stream)
    silent = [*before]
    silent[3] = before[3] & ~(termios.ECHO | termios.ICANON)  # a line of more than 4096 bytes would be cut
    termios.tcsetattr(stream, termios.TCSADRAIN, silent)
    _write(stream, _MARK_PASTES)
    try:
        yield
    finally:
        _write(stream, _LEAVE_PASTES)
        termios.tcsetattr(stream, termios.TCSADRAIN, before)


def _write(terminal: TextIO, code: str) -> None:
    """To the terminal itself, whose reading end `terminal` is."""
    with contextlib.suppress(OSError):
        os.write(terminal.fileno(), code.encode())


class Reader(Protocol):
    """Hands out one message at a time."""

    def read(self, draft: str = "") -> str | None:
        """The next message; None at the end. A person's Ctrl-C is a KeyboardInterrupt. `draft`: what the
        message begins with, for a person to change."""


class PipeReader:
    """Messages from a stream that nobody types into."""

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream

    def read(self, draft: str = "") -> str | None:  # noqa: ARG002 (nobody is there to change it)
        text = ""
        while self._stream is not None and (line := self._stream.readline()):
            text += line.removesuffix("\n")
            if not is_open(text):
                return message(text)
            text += "\n"
        return message(text) if text else None


class TerminalReader:
    """Messages that a person types, with editing, completion, search, and history, kept in a file."""

    def __init__(self, history: Path, names: Mapping[str, Names]) -> None:
        from prompt_toolkit import PromptSession
        from prompt_toolkit.shortcuts import CompleteStyle

        from llmrun.cli.repl.completion import SlashCompleter
        from llmrun.cli.repl.history import History

        self._session: PromptSession[str] = PromptSession(
            history=History(history),
            multiline=True,
            key_bindings=_keys(),
            prompt_continuation=CONTINUED,
            completer=SlashCompleter(names),
            complete_while_typing=False,
            complete_style=CompleteStyle.READLINE_LIKE,
            enable_open_in_editor=True,
        )

    def read(self, draft: str = "") -> str | None:
        try:
            return message(self._session.prompt(PROMPT, default=draft))
        except EOFError:
            return None


def _keys() -> KeyBindings:
    """Enter sends a message that is complete and opens a new line in one that is not; Alt-Enter always
    opens one."""
    from prompt_toolkit.filters import is_searching
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    keys = KeyBindings()

    @keys.add("enter", filter=~is_searching)
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
