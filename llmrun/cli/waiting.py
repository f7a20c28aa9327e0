"""What somebody sees who waits for a model: how long it takes, how far it is loaded, how many are in front.

In: what the daemon says of its models, asked again and again beside the request. Out: the text of a spinner.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from llmrun.errors import LlmrunError

if TYPE_CHECKING:
    from rich.text import Text

    from llmrun.cli.output import Output
    from llmrun.client.client import Client
    from llmrun.client.wire import LoadedModel

_SOON = 1.0  # seconds that need no explanation
_AGAIN = 0.5
_LONG = 2  # seconds after which they are counted


class Elapsed:
    """A text for rich that counts the seconds once they are some. It is drawn anew with the spinner."""

    def __init__(self, text: str, clock: Callable[[], float] = time.monotonic) -> None:
        self.text = text
        self._clock = clock
        self._began = clock()

    def __rich__(self) -> Text:
        from rich.text import Text  # not markup: a model's name may hold brackets

        seconds = int(self._clock() - self._began)
        return Text(self.text if seconds < _LONG else f"{self.text} ({seconds} s)")


@contextmanager
def waiting_for(out: Output, client: Client, model: str) -> Iterator[None]:
    """A spinner that knows what the model is doing; nothing unless a person watches stderr."""
    with out.waiting(f"waiting for {model}") as tell:
        if not out.spins:
            yield
            return
        over = threading.Event()
        # It is not joined: a daemon that hangs must not hold up the command.
        threading.Thread(target=_watch, args=(client, model, tell, over), daemon=True).start()
        try:
            yield
        finally:
            over.set()


def _watch(client: Client, model: str, tell: Callable[[str], None], over: threading.Event) -> None:
    patience = _SOON
    while not over.wait(patience):
        patience = _AGAIN
        try:
            loaded = client.loaded()
        except LlmrunError:
            return  # the request itself says what is wrong
        for each in loaded:
            if each.name == model and not over.is_set():
                tell(doing(each))


def loading(progress: float) -> tuple[str, str]:
    """What is done to a model that is being loaded, and how far that is, where it is known: before its
    weights are read its process starts, and when they are in place it computes its first token."""
    if progress >= 1:
        return "warming up", ""
    return "loading", f"{progress:.0%}" if progress > 0 else ""


def doing(model: LoadedModel) -> str:
    """What keeps a model from answering at once."""
    if model.state == "loading":
        doing, known = loading(model.progress)
        return f"{doing} {model.name}{f': {known}' if known else ''}"
    if model.stats and model.stats.waiting:
        running, waiting = model.stats.running, model.stats.waiting
        return f"waiting for {model.name}: it is answering {running}, and {waiting} wait"
    return f"waiting for {model.name}"
