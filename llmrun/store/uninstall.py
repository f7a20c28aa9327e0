"""All that llmrun made on this machine. In: the folders. Out: what there is, by size; and its removal.

Only what llmrun is known to make is named, so that a folder which holds more than llmrun's files (someone may
set LLMRUN_HOME to their home folder) keeps the rest.
"""

from __future__ import annotations

import shutil
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from llmrun.config import Paths
from llmrun.store.disk import write_atomic
from llmrun.store.housekeeping import disk_size

_IN_MODELS = ("files", "partial", "blobs", "manifests", "locks")
_IN_STATE = ("daemon.lock", "daemon.json", "start.lock", "chat_history", "chats", "key-usage.json")
_IN_CACHE = ("kv", "steps")
_IN_LOGS = "daemon.log*"
_IN_CONFIG = ("config.toml", "keys.json", "keys.lock")
# Where `llmrun --install-completion` puts its scripts (Typer's places).
_COMPLETIONS = (".bash_completions/llmrun.sh", ".zfunc/_llmrun", ".config/fish/completions/llmrun.fish")
_SOURCES_THEM = ".bashrc"


@dataclass(frozen=True)
class Trace:
    """A file or folder of llmrun's; `size` as the disk counts it."""

    path: Path
    size: int


def traces(paths: Paths, home: Path) -> list[Trace]:
    """Everything there is of llmrun's; `home` is the person's home folder."""
    return [trace(path) for path in _known(paths, home)]


def trace(path: Path) -> Trace:
    """A file or folder that is there."""
    return Trace(path, disk_size(path))


def remove(paths: Paths, found: list[Trace]) -> None:
    """Delete what `traces` found, and the folders of llmrun's that are empty then."""
    for trace in found:
        if trace.path.is_dir():
            shutil.rmtree(trace.path)
        else:
            trace.path.unlink(missing_ok=True)
    folders = [paths.models, paths.cache, paths.logs, paths.state, paths.config]
    for folder in [*folders, *dict.fromkeys(folder.parent for folder in folders)]:
        if folder.is_dir() and not any(folder.iterdir()) and _ours(folder, folders):
            folder.rmdir()


def forget_completions(home: Path) -> None:
    """Take the line out of a shell's start file that reads the completions: each new shell would complain."""
    script, start = home / _COMPLETIONS[0], home / _SOURCES_THEM
    if script.exists() or not start.is_file():
        return
    lines = start.read_bytes().splitlines(keepends=True)
    kept = [line for line in lines if line.strip() != f"source '{script}'".encode()]
    if len(kept) < len(lines):
        mode = stat.S_IMODE(start.stat().st_mode)
        write_atomic(start.resolve(), b"".join(kept))
        start.chmod(mode)


def _ours(folder: Path, folders: list[Path]) -> bool:
    """Whether an empty folder is one of llmrun's or named after it: not the platform's own folder."""
    return folder in folders or folder.name == "llmrun" or all(one.parent == folder for one in folders)


def _known(paths: Paths, home: Path) -> Iterator[Path]:
    for name in _IN_MODELS:
        yield from _there(paths.models / name)
    for name in _IN_STATE:
        yield from _there(paths.state / name)
    if paths.logs.is_dir():
        yield from sorted(paths.logs.glob(_IN_LOGS))
    for name in _IN_CONFIG:
        yield from _there(paths.config / name)
    for name in _IN_CACHE:
        yield from _there(paths.cache / name)
    for name in _COMPLETIONS:
        yield from _there(home / name)


def _there(path: Path) -> Iterator[Path]:
    if path.exists():
        yield path
