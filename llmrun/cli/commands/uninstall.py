"""`llmrun uninstall`: what llmrun made on this machine, and its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.session import session_of
from llmrun.errors import CONFLICT, USAGE, LlmrunError
from llmrun.store.disk import human

app = new_app()


@app.command()
def uninstall(
    context: typer.Context,
    purge: Annotated[bool, typer.Option("--purge", help="Remove all of it.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    as_json: AsJson = False,
) -> None:
    """List all that llmrun made here: models, logs, settings, history. With --purge, remove it.

    \b
    Examples:
      llmrun uninstall
      llmrun uninstall --purge --yes
    """
    from llmrun.daemon.lock import find_daemon
    from llmrun.store.disk import writing
    from llmrun.store.uninstall import remove, traces

    session = session_of(context)
    found = traces(session.paths, Path.home())
    if as_json:
        session.out.mode = "json"
    session.out.records(
        [{"name": str(trace.path), "size": trace.size} for trace in found],
        {"SIZE": lambda one: human(one["size"]), "PATH": lambda one: one["name"]},
    )
    total = human(sum(trace.size for trace in found))
    package = f"the program itself: {sys.executable} -m pip uninstall llmrun"
    if not purge:
        session.out.note(f"{total}; remove it: llmrun uninstall --purge; {package}")
        return
    if daemon := find_daemon(session.paths):
        raise LlmrunError(CONFLICT, f"the daemon runs (pid {daemon.pid})", hint="llmrun stop --daemon first")
    if found and not yes:
        if not sys.stdin or not sys.stdin.isatty():
            raise LlmrunError(USAGE, "nobody is there to be asked", hint="say it: --purge --yes")
        typer.confirm(f"Remove all of it ({total})?", abort=True, err=True)
    with writing(session.paths.models):
        remove(session.paths, found)
    session.out.note(f"{total} freed; {package}")
