"""The texts that have systemd or launchd run `llmrun serve`, and whether somebody edited one. Pure.

A text carries the checksum of its other lines. One whose checksum does not hold was edited by a person.
Formats: systemd.service(5), systemd.exec(5), systemd.syntax(7); launchd.plist(5).
"""

from __future__ import annotations

import hashlib
import plistlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

LABEL = "llmrun"
_MARK = "written by llmrun service install; an edited one is kept; checksum "
_MARKED = re.compile(rf"^.*{re.escape(_MARK)}([0-9a-f]{{16}}).*\n", re.MULTILINE)
_TEMPORARY = (Path("/tmp"), Path("/var/tmp"))


@dataclass(frozen=True)
class Spec:
    """command: what to run. env: what it needs beside what the system sets. writable: the only folders that
    it may change. log: where launchd puts what it prints; systemd has its journal."""

    command: tuple[str, ...]
    env: Mapping[str, str]
    writable: tuple[Path, ...]
    log: Path


def systemd_unit(spec: Spec) -> str:
    """A user unit that may change nothing but its own folders and gain no rights.

    Devices stay visible, for GPUs are some. The file system is read-only rather than hidden, so that models
    that are used in place can be read.
    """
    private_tmp = not any(
        folder.is_relative_to(temporary) for folder in spec.writable for temporary in _TEMPORARY
    )
    lines = [
        "[Unit]",
        "Description=llmrun: language models on this machine",
        "# It waits for as long as another daemon of this user runs.",
        "StartLimitIntervalSec=0",
        "",
        "[Service]",
        "Type=exec",
        f"ExecStart={' '.join(_quoted(word, dollar=True) for word in spec.command)}",
        *(f"Environment={_quoted(f'{name}={value}')}" for name, value in spec.env.items()),
        "Restart=on-failure",
        "RestartSec=5",
        "TimeoutStopSec=20",
        "",
        "UMask=0077",
        "NoNewPrivileges=yes",
        "ProtectSystem=strict",
        f"ReadWritePaths={' '.join(_quoted(str(folder)) for folder in spec.writable)}",
        *(["PrivateTmp=yes"] if private_tmp else []),
        "ProtectControlGroups=yes",
        "ProtectKernelTunables=yes",
        "RestrictAddressFamilies=AF_UNIX AF_INET AF_INET6 AF_NETLINK",
        "RestrictNamespaces=yes",
        "RestrictRealtime=yes",
        "RestrictSUIDSGID=yes",
        "LockPersonality=yes",
        "SystemCallArchitectures=native",
        "SystemCallFilter=@system-service",
        "SystemCallErrorNumber=EPERM",
        "",
        "[Install]",
        "WantedBy=default.target",
        "",
    ]
    text = "\n".join(lines)
    return f"# {_MARK}{_checksum(text)}\n{text}"


def _quoted(word: str, *, dollar: bool = False) -> str:
    """A word as systemd reads it back: quoted, its specifiers and, in commands, its variables escaped."""
    word = word.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n").replace("%", "%%")
    return f'"{word.replace("$", "$$") if dollar else word}"'


def launchd_agent(spec: Spec) -> str:
    """A property list of an agent that runs from login on and after a crash."""
    agent = {
        "Label": LABEL,
        "ProgramArguments": list(spec.command),
        "EnvironmentVariables": dict(spec.env),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "ThrottleInterval": 5,
        "ExitTimeOut": 20,
        "Umask": 0o077,
        "StandardErrorPath": str(spec.log),
    }
    text = plistlib.dumps(agent, sort_keys=False).decode()
    head, rest = text.split("\n", 1)
    return f"{head}\n<!-- {_MARK}{_checksum(text)} -->\n{rest}"


def is_edited(text: str) -> bool:
    """Whether a unit is not, or no more, what `llmrun service install` wrote."""
    found = _MARKED.search(text)
    return not found or _checksum(_MARKED.sub("", text, count=1)) != found[1]


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]
