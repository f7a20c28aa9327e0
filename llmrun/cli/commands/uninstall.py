"""`llmrun uninstall`: what llmrun made on this machine, and its end."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.session import session_of
from llmrun.config import Paths
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
    """List all that llmrun made here. Models, logs, settings, history, service; --purge removes them.

    \b
    Examples:
      llmrun uninstall
      llmrun uninstall --purge --yes
    """
    from llmrun.cli.service.manager import discard, installed
    from llmrun.store.disk import writing
    from llmrun.store.uninstall import forget_completions, remove, trace, traces

    session = session_of(context)
    found, service = traces(session.paths, Path.home()), installed()
    if service:
        found.append(trace(service.path))
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
    if not service:  # else its daemon ends with it
        _check_that_no_daemon_runs(session.paths)
    if found and not yes:
        if not sys.stdin or not sys.stdin.isatty():
            raise LlmrunError(USAGE, "nobody is there to be asked", hint="say it: --purge --yes")
        typer.confirm(f"Remove all of it ({total})?", abort=True, err=True)
    if service and (why := discard(service)):
        session.out.warn(f"{service.name} did not end the service ({why})")
    _check_that_no_daemon_runs(session.paths)
    with writing(session.paths.models):
        remove(session.paths, found)
        forget_completions(Path.home())
    session.out.note(f"{total} freed; {package}")


def _check_that_no_daemon_runs(paths: Paths) -> None:
    from llmrun.daemon.lock import find_daemon

    if daemon := find_daemon(paths):
        raise LlmrunError(CONFLICT, f"the daemon runs (pid {daemon.pid})", hint="llmrun stop --daemon first")
