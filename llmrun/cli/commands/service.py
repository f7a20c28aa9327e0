"""`llmrun service`: have the system run the daemon."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from llmrun.cli.args import AsJson, new_app
from llmrun.cli.output import Output
from llmrun.cli.session import Session, session_of
from llmrun.config import SETTINGS

if TYPE_CHECKING:
    from llmrun.cli.service.unit import Spec

app = new_app()

Force = Annotated[bool, typer.Option("--force", help="Also one that was edited.")]


@app.callback()
def service() -> None:
    """Have systemd or launchd run the daemon for this user."""


@app.command()
def install(context: typer.Context, force: Force = False) -> None:
    """Have the daemon run from login on, and start it. Settings of the environment are written into the unit.

    Run it again after a change of settings. A unit that was edited is kept.

    \b
    Example:
      LLMRUN_PARALLEL=4 llmrun service install
    """
    from llmrun.cli.service.manager import run, this_manager, typed
    from llmrun.daemon.lock import find_daemon

    session = session_of(context)
    out, manager, spec = session.out, this_manager(), _spec(session)
    if os.environ.get("LLMRUN_API_KEY"):
        out.warn("LLMRUN_API_KEY is not written into the unit; keep it with: llmrun config set api_key KEY")
    for folder in spec.writable:
        folder.mkdir(parents=True, exist_ok=True)
    written = manager.write(spec, force=force)
    words = {"new": "is written", "same": "is up to date", "renewed": "is renewed"}
    if written == "kept":
        out.warn(f"{manager.path} was edited and is kept; --force replaces it")
    else:
        out.note(f"{manager.path} {words[written]}")
    running = run([manager.active]) is None
    if not running and (daemon := find_daemon(session.paths)):
        out.note(f"a daemon runs already (pid {daemon.pid}); the service begins once: llmrun stop --daemon")
    commands = manager.again if running and written == "renewed" else manager.start
    if running and written in ("same", "kept") and manager.name == "launchd":
        commands = ()
    with out.waiting(f"{manager.name} starts it"):
        why = run(commands)
    if why:
        out.warn(f"{manager.name} did not take it ({why}); once it runs, type: {typed(commands)}")
        return
    out.note("the service runs; llmrun service status shows it")
    if manager.name == "systemd":
        out.note("it ends when you log out, unless you allow it to stay: loginctl enable-linger")


@app.command()
def uninstall(context: typer.Context, force: Force = False) -> None:
    """End the service and remove its unit. Models and settings stay. A unit that was edited is kept.

    \b
    Example:
      llmrun service uninstall
    """
    from llmrun.cli.service.manager import run, this_manager, typed
    from llmrun.cli.service.unit import is_edited

    out, manager = session_of(context).out, this_manager()
    text = manager.read()
    if text is None:
        out.note("no service is installed")
        return
    with out.waiting(f"{manager.name} ends it"):
        why = run(manager.stop)
    if why:
        out.warn(f"{manager.name} did not end it ({why}); if it still runs, type: {typed(manager.stop)}")
    if is_edited(text) and not force:
        out.warn(f"{manager.path} was edited and is kept; --force removes it")
        return
    manager.remove()
    run(manager.forget)
    out.note(f"{manager.path} is removed")


@app.command()
def status(context: typer.Context, as_json: AsJson = False) -> None:
    """Show whether the service is installed, starts at login, and runs.

    \b
    Example:
      llmrun service status --json
    """
    from llmrun.cli.service.manager import run, this_manager
    from llmrun.cli.service.unit import is_edited

    out, manager = session_of(context, as_json=as_json).out, this_manager()
    text = manager.read()
    found = {
        "manager": manager.name,
        "unit": str(manager.path),
        "installed": text is not None,
        "edited": text is not None and is_edited(text),
        "enabled": text is not None and run([manager.enabled]) is None,
        "running": text is not None and run([manager.active]) is None,
    }
    _show(out, found)


def _show(out: Output, found: dict[str, object]) -> None:
    if out.mode == "json":
        out.json(found)
        return
    words = {True: "yes", False: "no"}
    out.fields(
        [(name, words[value] if isinstance(value, bool) else str(value)) for name, value in found.items()]
    )


def _spec(session: Session) -> Spec:
    """What the service runs: this very llmrun, with the settings that the environment has. An API key is left
    out, for everybody who may read units could read it."""
    from llmrun.cli.service.unit import Spec
    from llmrun.client.child import environment
    from llmrun.client.connection import log_file

    paths = session.paths
    settings = {f"LLMRUN_{name.upper()}" for name in SETTINGS} - {"LLMRUN_API_KEY"} | {"LLMRUN_HOME"}
    child = environment(os.environ)
    given = {name: value for name, value in child.items() if name in settings}
    if "PYTHONPATH" in child:
        given["PYTHONPATH"] = child["PYTHONPATH"]
    return Spec(
        command=(sys.executable, "-m", "llmrun", "serve"),
        env=dict(sorted(given.items())),
        writable=tuple(dict.fromkeys((paths.models, paths.cache, paths.logs, paths.state))),
        log=log_file(paths),
    )
