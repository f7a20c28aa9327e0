"""`llmrun stop`: unload models, or end the daemon."""

from __future__ import annotations

import os
import signal
import time
from typing import Annotated

import typer

from llmrun.cli.args import complete_model, new_app
from llmrun.cli.output import Output
from llmrun.cli.reach import connector, daemon_name
from llmrun.cli.session import session_of
from llmrun.client.connection import Connector
from llmrun.daemon.lock import find_daemon
from llmrun.errors import DAEMON_UNREACHABLE, FORBIDDEN, UNAUTHORIZED, USAGE, LlmrunError
from llmrun.hosts import base_url

app = new_app()
PATIENCE = 30.0
POLL = 0.1


@app.command()
def stop(
    context: typer.Context,
    models: Annotated[
        list[str] | None,
        typer.Argument(metavar="MODEL", help="Models to unload; all without.", autocompletion=complete_model),
    ] = None,
    daemon: Annotated[bool, typer.Option("--daemon", help="End the background daemon.")] = False,
) -> None:
    """Unload models from memory at once. The requests they are answering fail.

    \b
    Examples:
      llmrun stop smollm2:135m
      llmrun stop --daemon
    """
    session = session_of(context)
    where = connector(session)
    if daemon:
        if models:
            raise LlmrunError(USAGE, "--daemon ends the daemon with all its models", hint="leave out MODEL")
        end_daemon(where, session.out)
        return
    client = where.find()
    if client is None:
        session.out.note("no daemon is running, so nothing is loaded")
        return
    with client:
        wanted: list[str | None] = [daemon_name(model) for model in models] if models else [None]
        stopped = [name for model in wanted for name in client.stop(model)]
    for name in stopped:
        session.out.note(f"{name} is unloaded")
    if not stopped:
        session.out.note("nothing was loaded" if not models else f"not loaded: {', '.join(models)}")


def _none(where: Connector) -> str:
    """That none runs, or at another address than the one named: then a daemon cannot start here, and says
    that the other is to be ended."""
    other = find_daemon(where.paths)
    if not (where.named and other):
        return "no daemon is running"
    named, at = base_url(*where.settings.host), other.url.removeprefix("http://")
    return (
        f"no daemon is running at {named}, but one is at {other.url}: LLMRUN_HOST={at} llmrun stop --daemon"
    )


def _signalled(where: Connector) -> bool:
    """Whether the daemon that was asked is that of this data folder, and was told to end as the system lets
    its user: who may write here needs no key to end what was started here."""
    ours = find_daemon(where.paths)
    if ours is None or (where.named and ours.url != base_url(*where.settings.host)):
        return False
    try:
        os.kill(ours.pid, signal.SIGTERM)
    except OSError:
        return False
    return True


def end_daemon(where: Connector, out: Output) -> None:
    """Ask the daemon to end and wait until it has."""
    client = where.find()
    if client is None:
        out.note(_none(where))
        return
    with client:
        try:
            client.shutdown()
        except LlmrunError as error:
            if error.kind not in (UNAUTHORIZED, FORBIDDEN) or not _signalled(where):
                raise
    deadline = time.monotonic() + PATIENCE
    with out.waiting("the daemon is ending"):
        while where.is_running():
            if time.monotonic() > deadline:
                raise LlmrunError(
                    DAEMON_UNREACHABLE, f"the daemon still runs after {PATIENCE:.0f} s", hint=""
                )
            time.sleep(POLL)
    out.note("the daemon has ended")
