"""`llmrun verify`: whether models are what they were when they were pulled."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import AsJson, complete_model, new_app
from llmrun.cli.session import session_of
from llmrun.errors import BAD_FILE, LlmrunError

app = new_app()
_WORDS = {"missing": "missing", "size": "has another length", "damaged": "damaged"}


@app.command()
def verify(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help="One model; else all.", autocompletion=complete_model),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Check models byte by byte. Of files used in place, whose digest nobody knows, the header is checked.

    \b
    Examples:
      llmrun verify
      llmrun verify smollm2:135m
    """
    from llmrun.cli.download import reporter
    from llmrun.store import Store
    from llmrun.store.housekeeping import Housekeeper

    session = session_of(context)
    name = Store(session.paths).full_name(model) if model else None
    with reporter(session.out) as report:
        found = Housekeeper(session.paths).verify(name, on_progress=report)
    if as_json:
        session.out.mode = "json"
    records = [
        {"name": one.model, "file": str(one.path), "state": one.state, "digest": one.digest} for one in found
    ]
    session.out.records(
        records,
        {
            "MODEL": lambda one: one["name"],
            "STATE": lambda one: _WORDS.get(one["state"], "ok" if one["digest"] else "ok (header)"),
            "FILE": lambda one: one["file"],
        },
    )
    broken = sorted({one.model for one in found if one.state != "ok"})
    if broken:
        first = next(one for one in Store(session.paths).list() if one.name == broken[0])
        anew = f"get it anew: llmrun rm {first.name}, then llmrun pull {first.name}"
        raise LlmrunError(
            BAD_FILE,
            f"{len(broken)} of {len({one.model for one in found})} models are not whole: {', '.join(broken)}",
            hint=f"{first.mended_by}, or llmrun rm {first.name}" if first.in_place else anew,
        )
