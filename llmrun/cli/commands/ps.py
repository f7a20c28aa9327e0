"""`llmrun ps`: the models in memory."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Annotated

import msgspec
import typer

from llmrun.cli import amounts
from llmrun.cli.args import AsJson, new_app
from llmrun.cli.layout import Columns, Record, table
from llmrun.cli.output import Output
from llmrun.cli.reach import connector
from llmrun.cli.session import session_of
from llmrun.cli.waiting import loading
from llmrun.client.client import Client
from llmrun.store.disk import human
from llmrun.store.facts import VECTOR_KINDS

app = new_app()
INTERVAL = 1.0


@app.command()
def ps(
    context: typer.Context,
    watch: Annotated[bool, typer.Option("--watch", help="Show it again every second.")] = False,
    as_json: AsJson = False,
) -> None:
    """List the models in memory, what they hold and what they are doing.

    \b
    Examples:
      llmrun ps
      llmrun ps --watch
    """
    session = session_of(context, as_json=as_json)
    out = session.out
    with connector(session).connect() as client:
        if not watch:
            out.records(_records(client), COLUMNS)
        elif out.on_terminal and out.mode == "human" and not out.quiet:
            _repaint(out, client)
        else:
            while True:
                out.records(_records(client), COLUMNS)
                time.sleep(INTERVAL)


def _repaint(out: Output, client: Client) -> None:
    """The table in place, until Ctrl-C."""
    from rich.live import Live
    from rich.text import Text

    with Live(console=out.result_console(), auto_refresh=False) as live:
        while True:
            lines = table(_records(client), COLUMNS, out.width)
            live.update(Text("\n".join(lines), no_wrap=True), refresh=True)
            time.sleep(INTERVAL)


def _records(client: Client) -> list[Record]:
    return [msgspec.to_builtins(model) for model in client.loaded()]


def _state(model: Record) -> str:
    return (
        " ".join(loading(model["progress"])).strip() if model["state"] == "loading" else str(model["state"])
    )


def _size(model: Record) -> str:
    info = model["info"]
    return human(info["size"] + info["kv_bytes"]) if info else "-"


def _writes(model: Record) -> bool:
    return not model["info"] or model["info"]["kind"] not in VECTOR_KINDS


def _context(model: Record) -> str:
    info, stats = model["info"], model["stats"]
    if not _writes(model):
        return str(info["ctx"])
    return (
        f"{stats['kv_used'] if stats else 0}/{stats['kv_total'] if stats else info['ctx']}" if info else "-"
    )


def _expires(model: Record) -> str:
    if model["state"] != "ready" or model["in_flight"]:
        return "in use" if model["in_flight"] else "-"
    at = model["expires_at"]
    return f"in {amounts.duration(at - time.time())}" if at else "never"


def _stat(name: str) -> Callable[[Record], str]:
    return lambda model: str(model["stats"][name]) if model["stats"] else "-"


def _figure(model: Record, name: str, form: str) -> str:
    return form.format(model["stats"][name]) if model["stats"] and _writes(model) else "-"


def _cached(model: Record) -> str:
    """The share of all prompt tokens that were not computed again."""
    stats = model["stats"]
    if not stats or not stats["prompt_tokens"] or not _writes(model):
        return "-"
    return f"{stats['cached_tokens'] / stats['prompt_tokens']:.0%}"


COLUMNS: Columns = {
    "NAME": lambda model: model["name"],
    "KIND": lambda model: model["info"]["kind"] if model["info"] else "-",
    "STATE": _state,
    "SIZE": _size,
    "DEVICE": lambda model: model["info"]["device"] if model["info"] else "-",
    "CONTEXT": _context,
    "RUNNING": _stat("running"),
    "WAITING": _stat("waiting"),
    "TOKENS/S": lambda model: _figure(model, "decode_tps", "{:.0f}"),
    "ITL": lambda model: _figure(model, "itl_p50_ms", "{:.0f} ms"),
    "CACHED": _cached,
    "EXPIRES": _expires,
}
