"""`llmrun quantize`: a new model in another number type."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli import completion
from llmrun.cli.args import ModelName, new_app
from llmrun.cli.session import session_of
from llmrun.store.disk import human

app = new_app()


@app.command()
def quantize(
    context: typer.Context,
    model: ModelName,
    kind: Annotated[
        str,
        typer.Argument(
            metavar="TYPE",
            help="Q4_0, Q4_K_M, Q8_0, …",
            show_default=False,
            autocompletion=completion.types,
        ),
    ],
    name: Annotated[
        str | None, typer.Option("-o", metavar="NAME", help="What the new model is called.")
    ] = None,
    imatrix: Annotated[
        Path | None, typer.Option(metavar="FILE", help="An importance matrix.", exists=True, dir_okay=False)
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also from a type that lost precision already.")
    ] = False,
) -> None:
    """Make a new model of one on disk, in another number type. The new file is loaded before it appears.

    \b
    Examples:
      llmrun quantize ./model-F16.gguf Q4_0 -o my-model
      llmrun quantize smollm2:135m Q4_0 --again
    """
    from llmrun.cli.download import reporter
    from llmrun.store import Store, parse_name
    from llmrun.store.peeking import peek_at
    from llmrun.store.quantizing import Quantizer, Wish, default_name, type_of

    session = session_of(context)
    store = Store(session.paths)
    peek, wanted = peek_at(store.resolve(model)), type_of(kind)
    called = str(parse_name(name or default_name(peek.model.name, wanted)))
    with reporter(session.out) as report:
        made = Quantizer(session.paths).run(peek, Wish(wanted, called, again, imatrix), report)
    new = store.resolve(made)
    session.out.note(f"{new.name}: {human(new.size)}, from {human(peek.model.size)} of {peek.model.name}")
