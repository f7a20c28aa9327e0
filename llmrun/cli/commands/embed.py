"""`llmrun embed`: texts to vectors, as JSON lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import typer

from llmrun.cli.args import Local, ModelName, new_app
from llmrun.cli.output import Output
from llmrun.cli.prompt import STDIN, StandardInput
from llmrun.cli.session import session_of
from llmrun.errors import USAGE, LlmrunError

app = new_app()
AT_ONCE = 64  # texts of one request: enough to fill batches, and the first vectors come soon


@app.command(no_args_is_help=False)
def embed(
    context: typer.Context,
    model: ModelName,
    text: Annotated[
        list[str] | None,
        typer.Argument(metavar="TEXT", help="Texts, each one input; none, or -: the lines of stdin."),
    ] = None,
    dimensions: Annotated[
        int | None, typer.Option(metavar="N", min=1, help="Keep N leading numbers; default: all.")
    ] = None,
    truncate: Annotated[
        bool, typer.Option("--truncate", help="Cut texts that are longer than the context.")
    ] = False,
    local: Local = False,
) -> None:
    """Turn texts into vectors. One JSON line each, in the order of the texts.

    \b
    Examples:
      llmrun embed all-minilm:l6-v2 "A man is eating." "Somebody has lunch."
      llmrun embed all-minilm:l6-v2 < sentences.txt > vectors.jsonl
    """
    from llmrun.cli.reach import reach
    from llmrun.cli.waiting import waiting_for

    session = session_of(context)
    texts = _texts(text or [STDIN], StandardInput(sys.stdin, session.out.note))
    first = next(texts, None)
    if first is None:
        raise LlmrunError(USAGE, "there is no text", hint="write it after the model, or pipe it in")
    with reach(session, model, local=local) as there, there.client() as client:
        index, batch = 0, [first, *islice(texts, AT_ONCE - 1)]
        while batch:
            with waiting_for(session.out, client, there.model):
                reply = client.embed(there.model, batch, dimensions=dimensions, truncate=truncate)
            for number, vector in enumerate(reply.vectors()):
                _show(session.out, index + number, vector)
            for cut in reply.truncated:
                session.out.warn(f"text {index + cut.index} was cut by {cut.tokens_cut} tokens")
            index += len(batch)
            batch = list(islice(texts, AT_ONCE))


def _texts(words: list[str], stdin: StandardInput) -> Iterator[str]:
    """The words, and for each `-` the lines of stdin. LlmrunError USAGE where one is empty."""
    for word in words:
        for number, line in enumerate(stdin.read().splitlines() if word == STDIN else [word], 1):
            if not line.strip():
                where = f"line {number} of stdin" if word == STDIN else "a text"
                raise LlmrunError(USAGE, f"{where} is empty", hint="leave it out")
            yield line


def _show(out: Output, index: int, vector: list[float]) -> None:
    out.result(json.dumps({"index": index, "embedding": vector}))
