"""`llmrun explain`: one request, stage by stage."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import AsJson, Local, MaxTokens, ModelName, OptionPairs, System, Temperature, new_app
from llmrun.cli.options import parse_options
from llmrun.cli.prompt import StandardInput, gather, given
from llmrun.cli.session import session_of
from llmrun.types import Message, Options

app = new_app()
_ANSWER = 32  # tokens, unless more are wanted: each has its line


@app.command()
def explain(
    context: typer.Context,
    model: ModelName,
    prompt: Annotated[
        list[str] | None, typer.Argument(metavar="PROMPT", help="Words of the prompt; - is stdin.")
    ] = None,
    system: System = None,
    temperature: Temperature = None,
    max_tokens: MaxTokens = _ANSWER,
    option: OptionPairs = None,
    candidates: Annotated[
        int, typer.Option(metavar="N", min=1, max=100, help="Likeliest tokens to show at each step.")
    ] = 5,
    page: Annotated[
        Path | None, typer.Option("--html", metavar="FILE", dir_okay=False, help="Write it as one HTML file.")
    ] = None,
    as_json: AsJson = False,
    local: Local = False,
) -> None:
    """Show one request stage by stage. Template, tokens, cache, prefill, each step's candidates, times, KV.

    The prompt is what `llmrun run` would send. Each step's candidates have the model's own probabilities, and
    those after each sampler in turn.

    \b
    Examples:
      llmrun explain smollm2:135m "What is the capital of France?"
      llmrun explain smollm2:135m "Summarise:" < notes.txt
      llmrun explain smollm2:135m "Say hi" --temperature 0 --html request.html
      llmrun explain smollm2:135m "Say hi" --json | jq '.steps[0].samplers'
    """
    import msgspec

    from llmrun.cli.explaining.page import page as as_page
    from llmrun.cli.explaining.terminal import lines
    from llmrun.cli.explaining.trace import watch
    from llmrun.cli.reach import reach
    from llmrun.cli.waiting import waiting_for
    from llmrun.store import Store
    from llmrun.store.anatomy import anatomy
    from llmrun.store.disk import write_atomic

    session = session_of(context, as_json=as_json)
    out = session.out
    turns = [] if system is None else [Message(role="system", content=system)]
    text = given(gather(prompt or (), (), StandardInput(sys.stdin, out.note)))
    turns.append(Message(role="user", content=text))
    options = Options(temperature=temperature, max_tokens=max_tokens).over(parse_options(option or ()))
    with reach(session, model, local=local) as there, there.client() as client:
        sizes = anatomy(Store(session.paths).peek(there.model).headers)
        with waiting_for(out, client, there.model):
            found = watch(client, there.model, turns, options, candidates, (sizes, session.settings.kv_type))
    if page:
        write_atomic(page, as_page(found).encode())
        out.note(f"written: {page}")
    if as_json:
        out.json(msgspec.to_builtins(found))
    elif not page:
        for line in lines(found, out.width):
            out.words(line)
