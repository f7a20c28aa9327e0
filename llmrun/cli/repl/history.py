"""What was typed, kept in a file of prompt_toolkit's format, so that the next chat finds it."""

from __future__ import annotations

import os
from datetime import datetime
from pathlib import Path

from prompt_toolkit.history import FileHistory

from llmrun.store.disk import write_atomic

LIMIT = 1_000_000  # bytes; of a longer file the newer half is kept


class History(FileHistory):
    """Each entry goes into the file in one write, so that chats side by side do not tear each other's."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_CREAT | os.O_APPEND, 0o600))  # nobody else's business
        if path.stat().st_size > LIMIT:
            _shorten(path)
        self._path = path
        super().__init__(path)

    def store_string(self, string: str) -> None:
        lines = "".join(f"+{line}\n" for line in string.split("\n"))
        entry = f"\n# {datetime.now()}\n{lines}".encode("utf-8", "replace")
        file = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        try:
            os.write(file, entry)
        finally:
            os.close(file)


def _shorten(path: Path) -> None:
    data = path.read_bytes()[-LIMIT // 2 :]
    write_atomic(path, data[max(data.find(b"\n# "), 0) :])
