"""`llmrun chat`: a conversation."""

from __future__ import annotations

from typing import Annotated

import typer

from llmrun.cli import completion
from llmrun.cli.args import Local, OptionPairs, System, Think, complete_model, new_app
from llmrun.cli.options import parse_options
from llmrun.cli.session import session_of
from llmrun.config import DEFAULT_MODEL
from llmrun.errors import USAGE, LlmrunError

app = new_app()


@app.command()
def chat(
    context: typer.Context,
    model: Annotated[
        str | None,
        typer.Argument(
            metavar="MODEL",
            help=f"Whom to talk to: {DEFAULT_MODEL}, or in an older chat its model, unless given.",
            autocompletion=complete_model,
        ),
    ] = None,
    system: System = None,
    option: OptionPairs = None,
    think: Think = None,
    resume: Annotated[bool, typer.Option("--continue", help="Go on with the last chat.")] = False,
    name: Annotated[
        str | None,
        typer.Option(
            "--session",
            metavar="NAME",
            help="Go on with this chat, or begin it.",
            autocompletion=completion.sessions,
        ),
    ] = None,
    local: Local = False,
) -> None:
    """Talk with a model. /help inside shows what you can type.

    Chats in a terminal are kept; /sessions lists them. Without one every line of stdin is a message, and only
    a chat with a name is kept.

    \b
    Examples:
      llmrun chat
      llmrun chat smollm2:135m --system "Answer in one sentence." -o temperature=0
      llmrun chat --continue
    """
    if resume and name:
        raise LlmrunError(USAGE, "--continue and --session each name a chat", hint="give one of them")
    from llmrun.cli.repl.loop import Wanted
    from llmrun.cli.repl.loop import chat as talk

    options = parse_options(option or ())
    talk(session_of(context), Wanted(model, system, options, think, resume, name), local=local)
