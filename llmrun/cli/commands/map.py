"""`llmrun map`: one prompt per line of stdin, answered side by side."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import (
    FormatName,
    Local,
    MaxTokens,
    ModelName,
    OptionPairs,
    Schema,
    System,
    Temperature,
    Think,
    new_app,
)
from llmrun.cli.options import parse_options
from llmrun.cli.output_format import output_format
from llmrun.cli.prompt_template import PromptTemplate
from llmrun.cli.session import session_of
from llmrun.errors import USAGE, LlmrunError
from llmrun.types import Options

app = new_app()


@app.command("map")
def map_(
    context: typer.Context,
    model: ModelName,
    template: Annotated[
        str,
        typer.Argument(
            metavar="TEMPLATE",
            help="The prompt: {} is the line; {name} a field of it, where lines are JSON objects.",
            show_default=False,
        ),
    ],
    system: System = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = None,
    option: OptionPairs = None,
    format_name: FormatName = None,
    schema: Schema = None,
    think: Think = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=1, max=1024, help="Requests at once; default: what keeps the batch full."
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            dir_okay=False,
            help="Write the results to this file, behind those it has; their lines are not asked again.",
        ),
    ] = None,
    local: Local = False,
) -> None:
    """Answer one prompt per line of stdin, many at once. Results are JSON lines, in the order of the lines.

    A result has the line's index from 0, its input, the output, finish_reason and usage; one that failed
    has error, and then the exit code is 1. Blank lines are counted and passed over.

    \b
    Examples:
      llmrun map smollm2:135m "Translate to French: {}" < lines.txt > results.jsonl
      llmrun map smollm2:135m "Is {name} a {kind}?" --resume results.jsonl < items.jsonl
      llmrun map smollm2:135m "Sort this mail: {}" --schema mail.json < mails.txt | jq .output
    """
    from llmrun.cli.mapping.run import Wanted, map_lines

    session = session_of(context)
    wanted = Wanted(
        template=PromptTemplate(template),
        system=system,
        options=Options(temperature=temperature, max_tokens=max_tokens).over(parse_options(option or ())),
        output=output_format(format_name, schema),
        think=think,
        concurrency=concurrency,
        resume=resume,
    )
    if not wanted.template.names:
        raise LlmrunError(USAGE, "the template has no place for a line", hint="put {} where it belongs")
    if sys.stdin is None:
        raise LlmrunError(USAGE, "there are no lines: stdin is closed", hint="pipe them in, or use < FILE")
    failures = map_lines(session, model, wanted, sys.stdin.fileno(), local=local)
    if failures:
        raise typer.Exit(1)
