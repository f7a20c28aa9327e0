"""`llmrun rm`: remove models."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import complete_model, new_app
from llmrun.cli.reach import connector
from llmrun.cli.session import session_of
from llmrun.client.connection import Connector
from llmrun.errors import LlmrunError
from llmrun.store.disk import human

app = new_app()


@app.command()
def rm(
    context: typer.Context,
    models: Annotated[
        list[str],
        typer.Argument(metavar="MODEL", help="Names to remove.", autocompletion=complete_model),
    ],
) -> None:
    """Remove models, also from memory. A file goes with its last name; one that is used in place stays.

    \b
    Example:
      llmrun rm smollm2:135m
    """
    from llmrun.store import Store

    session = session_of(context)
    store, where = Store(session.paths), connector(session)
    failed: list[LlmrunError] = []
    for name in models:
        try:
            removed = store.remove(name)
        except LlmrunError as error:
            failed.append(error)
            continue
        what = "its file stays" if removed.in_place else f"{human(removed.freed)} freed"
        session.out.note(f"{removed.name} is removed, {what}")
        unload(where, removed.name)
    for other in failed[:-1]:
        session.out.error(other)
    if failed:
        raise failed[-1]


def unload(where: Connector, name: str) -> None:
    """Out of memory, where this machine's daemon holds it: it would answer on under a name that is gone."""
    client = where.find() if where.shares_store else None
    if client is None:
        return
    with client:
        if any(model.name == name for model in client.loaded()):
            client.stop(name)
