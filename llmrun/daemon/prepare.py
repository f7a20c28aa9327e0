"""From what a client asked and what is on disk to what a runner is given.

In: a request, the stored model it names, the settings. Out: the complete request, and what to load for it.
Knows no processes.
"""

from __future__ import annotations

import msgspec

from llmrun.config import Settings
from llmrun.daemon.wanted import Wanted
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.runner.frames import Load
from llmrun.store import StoredModel
from llmrun.types import GenerateRequest, Message


def content_version(model: StoredModel) -> str:
    """A text that changes with the content of the model's files: the digest of the first; of the rest, and
    where nobody computed it, sizes and times."""
    unhashed = model.files[1:] if model.sha256 else model.files
    stats = [path.stat() for path in unhashed]
    return " ".join([model.sha256 or "", *(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)])


def prepare(
    request: GenerateRequest, model: StoredModel, version: str, settings: Settings
) -> tuple[GenerateRequest, Wanted]:
    """The request with the model's defaults laid under it, and what must be loaded for it.

    A Modelfile's turns go in front of every conversation, its system prompt in front of one that has none.
    A context that the request asks for beats the Modelfile's, which beats the settings'.
    """
    if model.kind == "embedding":
        raise LlmrunError(
            INVALID_REQUEST, f"{model.name} is an embedding model and writes no text", field="model"
        )
    options = request.options.over(model.options)
    messages = request.messages
    if messages is not None:
        first = 1 if messages and messages[0].role == "system" else 0
        messages = (*messages[:first], *model.messages, *messages[first:])
    if messages is not None and model.system and not any(m.role == "system" for m in messages):
        messages = (Message(role="system", content=model.system), *messages)
    prepared = msgspec.structs.replace(request, model=model.name, options=options, messages=messages)
    load = Load(
        name=model.name,
        path=str(model.path.absolute()),
        ctx=settings.ctx if options.ctx is None else options.ctx,
        parallel=settings.parallel,
        kv_type=settings.kv_type,
        gpu_layers=settings.gpu_layers,
        threads=settings.threads,
        template=model.template,
        adapters=tuple(str(path.absolute()) for path in model.adapters),
        draft=str(model.draft.absolute()) if model.draft else None,
    )
    return prepared, Wanted(load, version, model.size, request.keep_alive)
