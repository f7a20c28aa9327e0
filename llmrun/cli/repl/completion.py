"""What Tab offers: commands, the names they take, and files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

Names = Callable[[], Iterable[str]]
FILES = ("file", "export", "load")


class SlashCompleter(Completer):
    """names  command -> what its argument may be; all commands are keys"""

    def __init__(self, names: Mapping[str, Names]) -> None:
        self._names = names
        self._files = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        text = document.text_before_cursor
        if not text.startswith("/") or "\n" in text:
            return
        command, space, argument = text[1:].partition(" ")
        if not space:
            yield from _matching(command, self._names)
            return
        if command not in self._names:
            return
        if " " not in argument:
            yield from _matching(argument, self._names[command]())
        if command in FILES:
            path = Document(argument.rpartition(" ")[2])
            yield from self._files.get_completions(path, complete_event)


def _matching(begun: str, names: Iterable[str]) -> Iterable[Completion]:
    for name in names:
        if name.startswith(begun):
            yield Completion(name, start_position=-len(begun))
