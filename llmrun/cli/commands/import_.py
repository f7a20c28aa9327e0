"""`llmrun import`: take in what other programs keep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.session import session_of

app = new_app()
_WORDS = {"new": "taken in", "known": "here already", "refused": "not taken"}


@app.command("import")
def import_(
    context: typer.Context,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only list what is there.")] = False,
    as_json: AsJson = False,
) -> None:
    """Take in other programs' models. Ollama's, LM Studio's, the Hub cache's, llama.cpp's; nothing is copied.

    \b
    Examples:
      llmrun import --dry-run
      llmrun import
    """
    from llmrun.store.importing import Importer, find_all

    session = session_of(context)
    importer = Importer(session.paths)
    act = importer.judge if dry_run else importer.take
    with session.out.waiting("looking for what other programs keep"):
        done = [act(found) for found in find_all(Path.home())]
    if as_json:
        session.out.mode = "json"
    records = [
        {
            "name": one.name or one.found.name,
            "program": one.found.program,
            "state": one.state,
            "file": str(one.found.files[0][0]),
            "reason": one.reason or one.found.note,
        }
        for one in done
    ]
    words = {**_WORDS, "new": "new"} if dry_run else _WORDS
    if records or as_json:
        session.out.records(
            records,
            {
                "NAME": lambda one: one["name"],
                "PROGRAM": lambda one: one["program"],
                "STATE": lambda one: words[one["state"]],
                "FILE": lambda one: one["file"],
            },
        )
    for one in records:
        if one["reason"]:
            session.out.note(f"{one['name']}: {one['reason']}")
    if not records:
        session.out.note("no other program keeps models here (Ollama, LM Studio, Hugging Face, llama.cpp)")
