"""`llmrun create`: a model made from another by a Modelfile."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import new_app
from llmrun.cli.session import session_of
from llmrun.errors import NOT_FOUND, USAGE, LlmrunError

app = new_app()


@app.command()
def create(
    context: typer.Context,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the new model is called.")],
    file: Annotated[
        str, typer.Option("-f", "--file", metavar="MODELFILE", help="The Modelfile; - reads stdin.")
    ] = "Modelfile",
) -> None:
    """Make a model from another by a Modelfile. Weights are shared; a model of that name is replaced.

    \b
    Examples:
      llmrun create my-model -f Modelfile
      printf 'FROM smollm2:135m\\nSYSTEM You answer in rhymes.\\n' | llmrun create poet -f -
    """
    from llmrun.cli.download import reporter
    from llmrun.store import Store, parse_modelfile

    session = session_of(context)
    folder = Path.cwd() if file == "-" else Path(file).absolute().parent
    modelfile = parse_modelfile(_read(file), "stdin" if file == "-" else file).below(folder)
    with reporter(session.out) as report:
        model = Store(session.paths).create(name, modelfile, on_progress=report)
    if modelfile.requires:
        session.out.note(f"REQUIRES {modelfile.requires} speaks of Ollama and is not checked")
    session.out.note(f"{model.name} is made; try it: llmrun run {model.name}")


def _read(file: str) -> str:
    """The text of a Modelfile. NOT_FOUND or USAGE where there is none."""
    try:
        if file == "-":
            return sys.stdin.buffer.read().decode("utf-8") if sys.stdin else ""
        return Path(file).read_text("utf-8")
    except FileNotFoundError:
        raise LlmrunError(NOT_FOUND, f"there is no file {file}", hint="name it: -f MODELFILE") from None
    except UnicodeDecodeError:
        where = "stdin" if file == "-" else file
        raise LlmrunError(USAGE, f"{where} is no text", hint="a Modelfile is UTF-8 text") from None
