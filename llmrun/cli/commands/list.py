"""`llmrun list`: the models on this machine."""

from __future__ import annotations

from datetime import datetime

import typer

from llmrun.cli import amounts
from llmrun.cli.args import AsJson, new_app
from llmrun.cli.layout import Columns, Record
from llmrun.cli.session import session_of
from llmrun.store.disk import human

app = new_app()


@app.command("list")
def list_(context: typer.Context, as_json: AsJson = False) -> None:
    """List the models on this machine.

    \b
    Examples:
      llmrun list
      llmrun list --json
    """
    from llmrun.cli.records import model_record
    from llmrun.store import Store

    session = session_of(context, as_json=as_json)
    records = [model_record(model) for model in Store(session.paths).list()]
    session.out.records(records, COLUMNS)
    if not records:
        session.out.note("no models yet; pull one: llmrun pull smollm2:135m")


def _modified(model: Record) -> str:
    return "file missing" if model["missing"] else amounts.ago(datetime.fromisoformat(model["modified"]))


COLUMNS: Columns = {
    "NAME": lambda model: model["name"],
    "KIND": lambda model: model["kind"],
    "SIZE": lambda model: human(model["size"]),
    "QUANT": lambda model: model["quant"],
    "PARAMETERS": lambda model: amounts.parameters(model["parameters"]),
    "CONTEXT": lambda model: str(model["context"] or "-"),
    "SOURCE": lambda model: model["source"],
    "MODIFIED": _modified,
}
