"""`llmrun run`: one answer on stdout."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import (
    AsJson,
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
from llmrun.cli.prompt import StandardInput, gather, given, no_images, read_text
from llmrun.cli.prompt_template import filled
from llmrun.cli.session import session_of
from llmrun.errors import USAGE, LlmrunError
from llmrun.types import Message, Options

app = new_app()


@app.command(no_args_is_help=False)
def run(
    context: typer.Context,
    model: ModelName,
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="Words of the prompt; - is stdin.")
    ] = None,
    system: System = None,
    temperature: Temperature = None,
    top_p: Annotated[float | None, typer.Option(help="Keep the likeliest tokens up to this sum.")] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same answer.")] = None,
    max_tokens: MaxTokens = None,
    stop: Annotated[
        list[str] | None, typer.Option(help="End the answer before this text; repeatable.", metavar="TEXT")
    ] = None,
    ctx: Annotated[
        int | None, typer.Option(help="Context, in tokens. For a longer one the model is loaded anew.")
    ] = None,
    option: OptionPairs = None,
    file: Annotated[
        list[str] | None, typer.Option(help="A text file put after the prompt; repeatable.", metavar="FILE")
    ] = None,
    image: Annotated[
        list[str] | None,
        typer.Option(metavar="FILE", help="Is refused: no model that sees can be run yet."),
    ] = None,
    template: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", dir_okay=False, help="A prompt with places: {} is the prompt, {name} a --var."
        ),
    ] = None,
    var: Annotated[
        list[str] | None, typer.Option(metavar="NAME=VALUE", help="A value for --template; repeatable.")
    ] = None,
    format_name: FormatName = None,
    schema: Schema = None,
    think: Think = None,
    thoughts: Annotated[
        bool | None,
        typer.Option(
            "--show-thinking/--hide-thinking", help="Print the reasoning too; on a terminal it is printed."
        ),
    ] = None,
    raw: Annotated[bool, typer.Option("--raw", help="Send the prompt as it is, without a template.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show timings on stderr.")] = False,
    as_json: AsJson = False,
    local: Local = False,
) -> None:
    """Answer one prompt. Text piped in follows the prompt after a blank line.

    Without a prompt, on a terminal, this opens `llmrun chat`.

    \b
    Examples:
      llmrun run smollm2:135m "Why is the sky blue?"
      cat notes.txt | llmrun run smollm2:135m "Summarise:"
      llmrun run ./model.gguf --temperature 0 -o top_k=1 "Say hi"
      llmrun run smollm2:135m --schema person.json "Invent a person." | jq .name
      llmrun run smollm2:135m --template letter.txt --var name=Ann --var tone=kind
    """
    session = session_of(context, as_json=as_json)
    if image:
        raise no_images("--image")
    flags = Options(
        temperature=temperature,
        top_p=top_p,
        seed=seed,
        max_tokens=max_tokens,
        stop=tuple(stop or ()),
        ctx=ctx,
    )
    options = flags.over(parse_options(option or ()))
    output = output_format(format_name, schema)
    stdin = StandardInput(sys.stdin, session.out.note)
    if raw and system is not None:
        raise LlmrunError(USAGE, "--raw sends no system prompt", hint="leave out --system or --raw")
    if raw and think is not None:
        raise LlmrunError(USAGE, "--raw has no template to say --think to", hint="leave out one of them")
    if stdin.on_terminal and not (prompt or file or template or raw or as_json or output):
        from llmrun.cli.repl.loop import Wanted, chat

        chat(session, Wanted(model, system, options, think), local=local)
        return
    if var and not template:
        raise LlmrunError(USAGE, "--var is for a --template", hint="name its file, or leave --var out")
    text = gather(prompt or (), file or (), stdin)
    if template:
        text = filled(read_text(template).removesuffix("\n"), var or (), text)
    text = given(text)

    from llmrun.cli.answering import answer_once

    turns = [Message(role="system", content=system)] if system is not None else []
    turns.append(Message(role="user", content=text))
    answer_once(
        session,
        model,
        text if raw else turns,
        options,
        output,
        think=think,
        thoughts=thoughts,
        local=local,
        verbose=verbose,
    )
