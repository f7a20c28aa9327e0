"""systemd or launchd: where a unit lies, and the commands that start, stop and ask for it.

The unit is written whether or not the manager runs; then the commands are left for a person to type.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from llmrun.cli.service.unit import LABEL, Spec, is_edited, launchd_agent, systemd_unit
from llmrun.errors import USAGE, LlmrunError
from llmrun.store.disk import write_atomic

Command = tuple[str, ...]
Written = Literal["new", "same", "renewed", "kept"]
_PATIENCE = 60  # seconds: stopping waits for running answers


@dataclass(frozen=True)
class Manager:
    """start: what makes the manager run the unit from now on; again: after the text has changed; stop: what
    ends that; forget: once the unit is gone. active, enabled: whether it runs, and from login on."""

    name: str
    path: Path
    render: Callable[[Spec], str]
    start: tuple[Command, ...]
    again: tuple[Command, ...]
    stop: tuple[Command, ...]
    forget: tuple[Command, ...]
    active: Command
    enabled: Command

    def write(self, spec: Spec, *, force: bool) -> Written:
        """Bring the unit up to date. One that a person edited is kept, unless with `force`."""
        text = self.render(spec)
        old = self.read()
        if old == text:
            return "same"
        if old is not None and is_edited(old) and not force:
            return "kept"
        write_atomic(self.path, text.encode())
        return "new" if old is None else "renewed"

    def read(self) -> str | None:
        """The unit as it is; None where there is none."""
        try:
            return self.path.read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return None

    def remove(self) -> None:
        self.path.unlink(missing_ok=True)


def systemd(home: Path, env: Mapping[str, str]) -> Manager:
    """The user's own systemd."""
    config = Path(env.get("XDG_CONFIG_HOME") or home / ".config")
    unit = f"{LABEL}.service"
    call = ("systemctl", "--user")
    reload = (*call, "daemon-reload")
    return Manager(
        name="systemd",
        path=config / "systemd" / "user" / unit,
        render=systemd_unit,
        start=(reload, (*call, "enable", "--now", unit)),
        again=(reload, (*call, "enable", unit), (*call, "restart", unit)),
        stop=((*call, "disable", "--now", unit),),
        forget=(reload,),
        active=(*call, "is-active", "--quiet", unit),
        enabled=(*call, "is-enabled", "--quiet", unit),
    )


def launchd(home: Path, user: int) -> Manager:
    """launchd, for the session of the user with that id."""
    path = home / "Library" / "LaunchAgents" / f"{LABEL}.plist"
    domain = f"gui/{user}"
    leave = ("launchctl", "bootout", f"{domain}/{LABEL}")
    enter = ("launchctl", "bootstrap", domain, str(path))
    loaded = ("launchctl", "print", f"{domain}/{LABEL}")
    return Manager(
        name="launchd",
        path=path,
        render=launchd_agent,
        start=(enter,),
        again=(leave, enter),
        stop=(leave,),
        forget=(),
        active=loaded,
        enabled=loaded,
    )


def this_manager() -> Manager:
    """The one of this system. LlmrunError USAGE where there is none that is known."""
    if sys.platform == "darwin":
        return launchd(Path.home(), os.getuid())
    if sys.platform == "linux":
        return systemd(Path.home(), os.environ)
    raise LlmrunError(
        USAGE, f"services of {sys.platform} are not known", hint="have your system run: llmrun serve"
    )


def installed() -> Manager | None:
    """The one of this system, where it has a unit of llmrun's."""
    try:
        manager = this_manager()
    except LlmrunError:
        return None
    return None if manager.read() is None else manager


def discard(manager: Manager) -> str | None:
    """End the service and remove its unit; why the manager did not end it, if so."""
    why = run(manager.stop)
    manager.remove()
    run(manager.forget)
    return why


def run(commands: Sequence[Command]) -> str | None:
    """Run the commands up to the first that fails; why it did, None where all went well."""
    for command in commands:
        try:
            done = subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=_PATIENCE,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            return f"{command[0]}: {getattr(error, 'strerror', None) or error}"
        if done.returncode:
            said = (done.stderr or done.stdout).strip().splitlines()
            return f"{shlex.join(command)}: {said[0] if said else f'exit code {done.returncode}'}"
    return None


def typed(commands: Sequence[Command]) -> str:
    """The commands as one would type them."""
    return " && ".join(shlex.join(command) for command in commands)
