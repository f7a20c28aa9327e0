"""`llmrun chat`: a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli.args import Local, OptionPairs, System, Think, complete_model, new_app
from llmrun.cli.options import parse_options
from llmrun.cli.session import session_of
from llmrun.config import DEFAULT_MODEL

app = new_app()


@app.command()
def chat(
    context: typer.Context,
    model: Annotated[
        str, typer.Argument(metavar="MODEL", help="Whom to talk to.", autocompletion=complete_model)
    ] = DEFAULT_MODEL,
    system: System = None,
    option: OptionPairs = None,
    think: Think = None,
    local: Local = False,
) -> None:
    """Talk with a model. /help inside shows what you can type.

    Without a terminal every line of stdin is a message.

    \b
    Examples:
      llmrun chat
      llmrun chat smollm2:135m --system "Answer in one sentence." -o temperature=0
    """
    from llmrun.cli.repl.loop import chat as talk

    options = parse_options(option or ())
    talk(session_of(context), model, system=system, options=options, think=think, local=local)
