"""`llmrun bench`: how fast a model is here, and how good its quants are."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import AsJson, ModelName, new_app
from llmrun.cli.session import session_of
from llmrun.errors import USAGE, LlmrunError

app = new_app()


@app.command()
def bench(
    context: typer.Context,
    model: ModelName,
    lengths: Annotated[str, typer.Option(metavar="N,…", help="Lengths of prompts, in tokens.")] = "128,512",
    concurrency: Annotated[str, typer.Option(metavar="N,…", help="Requests at once.")] = "1,2,4,8",
    tokens: Annotated[int, typer.Option(metavar="N", min=2, help="Tokens of every answer.")] = 64,
    times: Annotated[
        int, typer.Option(metavar="N", min=1, help="Requests of each length, and of each caller.")
    ] = 3,
    quants: Annotated[
        str | None,
        typer.Option(metavar="A,B,…", help="Number types of the model, or models, to compare it with."),
    ] = None,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE", dir_okay=False, help="Draw the curves: .png, .svg or .pdf.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Measure a model's speed. Over prompt lengths and requests at once, in a daemon of its own.

    Roofline is the share of the memory's measured bandwidth that decoding takes. With --quants also
    perplexity, and the divergence from the largest of them, over a text that comes with llmrun.

    \b
    Examples:
      llmrun bench smollm2:135m
      llmrun bench smollm2:135m --lengths 64,256,1024 --concurrency 1,8 --plot speed.png
      llmrun bench smollm2:135m --quants Q4_0,Q8_0 --json
    """
    from llmrun.cli.bench.quants import resolve
    from llmrun.cli.bench.report import plot as draw
    from llmrun.cli.bench.report import require_plotting, show
    from llmrun.cli.bench.run import Plan, measure

    session = session_of(context, as_json=as_json)
    plan = Plan(counts("--lengths", lengths), counts("--concurrency", concurrency), tokens, times)
    if plot:
        require_plotting()
    others = [part.strip() for part in (quants or "").split(",") if part.strip()]
    report = measure(session, resolve(session, model, others), plan)
    if as_json:
        session.out.json(report)
    else:
        show(session.out, report)
    if plot:
        draw(report, plot)
        session.out.note(f"drawn: {plot}")


def counts(option: str, text: str) -> tuple[int, ...]:
    """Whole numbers from 1, with commas between. LlmrunError USAGE."""
    try:
        numbers = tuple(int(part) for part in text.split(","))
    except ValueError:
        numbers = ()
    if not numbers or min(numbers) < 1:
        raise LlmrunError(
            USAGE, f"{option} is {text!r}, which is no list of counts", hint=f"such as {option} 1,8"
        )
    return numbers
