"""Arguments that several commands share: one name, one help text, one completion each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

import typer

from llmrun.cli import completion
from llmrun.cli.groups import Group
from llmrun.cli.help import Command
from llmrun.errors import LlmrunError


class App(typer.Typer):
    """One whose commands have our help."""

    def command(self, name: str | None = None, **rest: Any) -> Callable[[Any], Any]:
        return super().command(name, cls=Command, **rest)


def new_app() -> typer.Typer:
    """The Typer app of one command module."""
    return App(
        cls=Group,
        rich_markup_mode=None,
        add_completion=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )


def complete_model(incomplete: str) -> list[str]:
    """Names of models in the store that start with what was typed so far."""
    from llmrun.config import Paths
    from llmrun.store import Store

    try:
        return [model.name for model in Store(Paths.find()).list() if model.name.startswith(incomplete)]
    except (LlmrunError, OSError):
        return []  # a shell completion has nobody to tell


ModelName = Annotated[
    str,
    typer.Argument(
        metavar="MODEL",
        help="A name from `llmrun list`, a catalogue name, a reference, or a path to a .gguf.",
        autocompletion=complete_model,
        show_default=False,
    ),
]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]

System = Annotated[str | None, typer.Option(metavar="TEXT", help="System prompt.")]

OptionPairs = Annotated[
    list[str] | None,
    typer.Option(
        "-o",
        metavar="KEY=VALUE",
        help="Any option, such as top_k=20; repeatable.",
        autocompletion=completion.options,
    ),
]

Think = Annotated[
    bool | None,
    typer.Option("--think/--no-think", help="Let the model reason first, or not; else as it likes."),
]

Temperature = Annotated[float | None, typer.Option(help="0 takes the likeliest token.")]

MaxTokens = Annotated[int | None, typer.Option(help="Longest answer, in tokens.")]

FormatName = Annotated[
    str | None,
    typer.Option(
        "--format",
        help="json: the answer is one JSON object.",
        metavar="json",
        autocompletion=completion.formats,
    ),
]

Schema = Annotated[
    str | None,
    typer.Option(help="A JSON Schema the answer must validate against.", metavar="FILE|JSON"),
]

Local = Annotated[bool, typer.Option("--local", help="Use a daemon of its own, which ends with the command.")]
