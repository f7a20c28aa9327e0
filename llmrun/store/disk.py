"""Writing safely: atomic replacement, locks between processes, free space, and errors in words."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from llmrun.errors import DISK, LlmrunError

if TYPE_CHECKING:
    from filelock import FileLock

BLOCK = 1 << 20
SPARE = 64 << 20  # bytes left free, so that a pull never fills the disk to the last byte


def human(size: float) -> str:
    """`size` bytes as a person says it: 98.4 MB. Powers of 1000, as disks and the Hub count."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1000
    return f"{size:.1f} TB"


def write_atomic(path: Path, data: bytes) -> None:
    """Put `data` at `path` whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile(dir=path.parent, prefix=".", suffix=".tmp", delete=False) as file:
        try:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink(missing_ok=True)
            raise


def free_space(folder: Path) -> int:
    """Bytes that may still be written in `folder`, or where it would be made."""
    return shutil.disk_usage(existing(folder)).free


def existing(folder: Path) -> Path:
    """`folder`, or the nearest folder above it that exists."""
    return next(place for place in (folder, *folder.parents) if place.exists())


def require_space(folder: Path, size: int) -> None:
    """DISK where `folder`, which exists, has no room for `size` more bytes."""
    free = free_space(folder)
    if free < size + SPARE:
        raise LlmrunError(
            DISK,
            f"{human(size)} are needed in {folder} and {human(free)} are free",
            hint="free some space, or set LLMRUN_HOME to a folder on a larger disk",
        )


def size_of(path: Path) -> int | None:
    """The length of a file; None where there is none, or none any more."""
    try:
        return path.stat().st_size if path.is_file() else None
    except FileNotFoundError:
        return None


def on_disk(folder: Path) -> int:
    """Bytes that the files under `folder` take up; those that go meanwhile are left out. Files with holes
    take less than their length."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(FileNotFoundError):
            size += path.stat().st_blocks * 512 if path.is_file() else 0
    return size


def sha256_of(path: Path, on_read: Callable[[int], None] | None = None) -> str:
    """The digest of a file; `on_read` gets the bytes read so far."""
    digest, done = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            digest.update(block)
            done += len(block)
            if on_read:
                on_read(done)
    return digest.hexdigest()


def _acquired(lock: FileLock, timeout: float) -> bool:
    from filelock import Timeout

    try:
        lock.acquire(timeout=timeout)
    except Timeout:
        return False
    return True


@contextmanager
def locked(path: Path, on_wait: Callable[[], None]) -> Iterator[None]:
    """Hold the lock file `path` against other threads and processes; `on_wait` is called before waiting, and
    twice a second while it lasts.

    The file stays: removing a lock that another process just opened would give two owners.
    """
    from filelock import FileLock

    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path)
    patience = 0.0
    while not _acquired(lock, patience):
        on_wait()
        patience = 0.5
    try:
        yield
    finally:
        lock.release()


def is_held(path: Path) -> bool:
    """Whether a thread or process holds the lock file `path`. Nothing is created."""
    from filelock import FileLock

    if not path.exists():
        return False
    lock = FileLock(path)
    if not _acquired(lock, 0):
        return True
    lock.release()
    return False


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Turn what the operating system refuses under `folder` into an error that says what to do."""
    try:
        yield
    except OSError as error:
        raise refused(error, folder) from error


def refused(error: OSError, folder: Path) -> LlmrunError:
    """What the operating system refused at a file under `folder`, in words."""
    where = error.filename or folder
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return LlmrunError(DISK, f"the disk of {folder} is full")
    why = error.strerror or str(error)
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return LlmrunError(
            DISK, f"{where} cannot be used ({why})", hint="set LLMRUN_HOME to a folder you may write to"
        )
    if error.errno in (errno.ENOTDIR, errno.EEXIST):
        file = next((parent for parent in Path(where).parents if parent.is_file()), where)
        return LlmrunError(
            DISK,
            f"{where} cannot be used, as {file} is a file (Not a directory)",
            hint="set LLMRUN_HOME to a folder, or remove that file",
        )
    return LlmrunError(DISK, f"{where}: {why}", hint="check the disk, or set LLMRUN_HOME to another folder")
