"""`llmrun prune`: free what nothing needs."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.session import session_of
from llmrun.store.disk import human

app = new_app()


@app.command()
def prune(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only show what would go.")] = False,
    as_json: AsJson = False,
) -> None:
    """Delete what interrupted pulls left and files that no model uses. Pulls under way keep theirs.

    \b
    Examples:
      llmrun prune --dry-run
      llmrun prune
    """
    from llmrun.store.housekeeping import Housekeeper

    session = session_of(context)
    keeper = Housekeeper(session.paths)
    found = keeper.litter() if dry_run else keeper.prune()
    if as_json:
        session.out.mode = "json"
    records = [{"name": str(one.path), "kind": one.kind, "size": one.size} for one in found]
    if records or as_json:
        session.out.records(
            records,
            {
                "SIZE": lambda one: human(one["size"]),
                "KIND": lambda one: one["kind"],
                "PATH": lambda one: one["name"],
            },
        )
    total = sum(one.size for one in found)
    session.out.note(f"{human(total)} {'would be ' if dry_run else ''}freed")
