"""`llmrun cp`: another name for a model."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import ModelName, new_app
from llmrun.cli.session import session_of

app = new_app()


@app.command()
def cp(
    context: typer.Context,
    source: ModelName,
    destination: Annotated[str, typer.Argument(metavar="NAME", help="The new name.", show_default=False)],
) -> None:
    """Give a model another name. The file is not copied.

    \b
    Example:
      llmrun cp smollm2:135m small
    """
    from llmrun.store import Store

    session = session_of(context)
    model = Store(session.paths).copy(source, destination)
    session.out.note(f"{model.name} is {source}")
