"""`llmrun logs`: what the background daemon and its models said."""

from __future__ import annotations

import codecs
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import new_app
from llmrun.cli.session import session_of
from llmrun.client.connection import log_file

app = new_app()
POLL = 0.25


@app.command()
def logs(
    context: typer.Context,
    lines: Annotated[int, typer.Option("-n", "--lines", min=0, help="How many of the last lines.")] = 50,
    follow: Annotated[bool, typer.Option("-f", "--follow", help="Go on as the log grows.")] = False,
) -> None:
    """Show the log of the daemon that runs in the background.

    \b
    Examples:
      llmrun logs
      llmrun logs -n 200 -f
    """
    session = session_of(context)
    path = log_file(session.paths)
    if not (path.exists() or follow):
        session.out.note(f"there is no log yet: no daemon was started in the background ({path})")
        return
    text, position = last_lines(path, lines)
    session.out.piece(text)
    if follow:
        for text in growth(path, position):
            session.out.piece(text)


def last_lines(path: Path, count: int) -> tuple[str, int]:
    """The last `count` lines, and the byte where they end; nothing where there is no file."""
    if not path.exists():
        return "", 0
    with path.open("rb") as log:
        kept = deque(log, maxlen=count)
        return b"".join(kept).decode("utf-8", "replace"), log.tell()


def growth(path: Path, position: int) -> Iterator[str]:
    """What is added to the file past `position`, also after it was put aside and begun anew. Endless."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    while True:
        size = path.stat().st_size if path.exists() else 0
        if size < position:
            position = 0
        if size > position:
            with path.open("rb") as log:
                log.seek(position)
                data = log.read(size - position)
            position += len(data)
            yield decoder.decode(data)
        time.sleep(POLL)
