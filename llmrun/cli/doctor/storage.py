"""The folders llmrun writes to, the room in them, and the models there."""

from __future__ import annotations

import os
from pathlib import Path

from llmrun.cli.doctor.finding import Finding, broken, ok, warning
from llmrun.config import Paths
from llmrun.errors import LlmrunError
from llmrun.store import Store, StoredModel
from llmrun.store.disk import existing, free_space, human

LEAST_SPACE = 2_000_000_000


def check_storage(paths: Paths) -> list[Finding]:
    """Writable, with room, and every model with its files."""
    findings = [*folders(paths), space(paths.models, free_space(paths.models))]
    try:
        return [*findings, *models(Store(paths).list())]
    except LlmrunError as error:
        return [*findings, broken("models", error.message, error.hint)]


def folders(paths: Paths) -> list[Finding]:
    """One finding for all folders; they need not exist yet."""
    wrong = [
        broken(
            "folders", f"{folder} cannot be written to", f"chmod u+rwx {existing(folder)}, or set LLMRUN_HOME"
        )
        for folder in (paths.models, paths.cache, paths.logs, paths.state, paths.config)
        if not (existing(folder).is_dir() and os.access(existing(folder), os.W_OK | os.X_OK))
    ]
    return wrong or [ok("folders", f"writable: {paths.models.parent}")]


def space(folder: Path, free: int) -> Finding:
    """A finding on the `free` bytes of the disk that holds `folder`."""
    text = f"{human(free)} free where models are kept ({folder})"
    if free < LEAST_SPACE:
        return warning("disk", text, "llmrun rm MODEL, or set LLMRUN_HOME to a folder on a larger disk")
    return ok("disk", text)


def models(stored: list[StoredModel]) -> list[Finding]:
    """How many there are, and those whose file is gone."""
    gone = [
        warning("models", f"the file of {model.name} is gone", model.mended_by)
        for model in stored
        if model.missing
    ]
    total = sum(model.size for model in stored if not model.missing)
    return [ok("models", f"{len(stored)}, {human(total)}"), *gone]
