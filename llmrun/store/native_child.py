"""Work that needs llama.cpp and no daemon, in a process of its own that talks in lines of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from typing import Any


class ChildError(Exception):
    """What the child says went wrong, or how it ended before it was done."""


def said_by(module: str, job: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What `python -m module JOB` says, until it says that it is done. ChildError where it fails. Closing the
    iterator ends the process; so does our own end, by the end of its stdin."""
    with subprocess.Popen(
        [sys.executable, "-m", module, json.dumps(job)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONSAFEPATH": "1"},
    ) as process:
        assert process.stdout is not None
        try:
            for line in process.stdout:
                said = json.loads(line)
                if "error" in said:
                    raise ChildError(said["error"])
                if said.get("done"):
                    return
                yield said
            code = process.wait()
        finally:
            process.kill()
    raise ChildError(f"its process ended with {code}")
