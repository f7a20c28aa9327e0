"""From what a client asked and what is on disk to what a runner is given.

In: a request, the stored model it names, the settings. Out: the complete request, and what to load for it.
Knows no processes.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TypeVar

import msgspec

from llmrun.config import Settings
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.runner.frames import Load
from llmrun.store import StoredModel
from llmrun.store.facts import VECTOR_KINDS
from llmrun.types import (
    AnyRequest,
    DetokenizeRequest,
    GenerateRequest,
    Message,
    Options,
    RenderRequest,
    TokenizeRequest,
)

R = TypeVar("R", bound=AnyRequest)


def content_version(model: StoredModel) -> str:
    """A text that changes with the content of the model's files: the digest of the first; of the rest, and
    where nobody computed it, sizes and times."""
    unhashed = model.files[1:] if model.sha256 else model.files
    stats = [path.stat() for path in unhashed]
    return " ".join([model.sha256 or "", *(f"{stat.st_size}@{stat.st_mtime_ns}" for stat in stats)])


def prepare(
    request: R, model: StoredModel, version: str, settings: Settings, kv_folder: Path | None = None
) -> tuple[R, Load]:
    """The request with the model's defaults laid under it, and what must be loaded for it.

    A Modelfile's turns go in front of every conversation, its system prompt in front of one that has none.
    A context that the request asks for beats the Modelfile's, which beats the settings'. `kv_folder` is for
    KV prefixes on disk.
    """
    if isinstance(request, GenerateRequest) and model.kind in VECTOR_KINDS:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{model.name} is a model of the kind {model.kind}, which writes no text",
            hint="use a chat model",
            field="model",
        )
    prepared, options = _completed(request, model)
    if isinstance(prepared, GenerateRequest) and settings.time_limit != math.inf:
        limit = min(settings.time_limit, options.time_limit or math.inf)
        prepared = msgspec.structs.replace(
            prepared, options=msgspec.structs.replace(options, time_limit=limit)
        )
    load = Load(
        name=model.name,
        path=str(model.path.absolute()),
        ctx=settings.ctx if options.ctx is None else options.ctx,
        parallel=settings.parallel,
        kv_type=settings.kv_type,
        kv_layout=settings.kv_layout,
        flash_attention=settings.flash_attention,
        gpu_layers=settings.gpu_layers,
        threads=settings.threads,
        cache_ram=settings.cache_ram,
        cache_disk=settings.cache_disk,
        kv_folder=str(kv_folder) if kv_folder else None,
        content=version,
        template=model.template,
        adapters=tuple(str(one.path.absolute()) for one in model.adapters),
        draft=str(model.draft.path.absolute()) if model.draft else None,
        drafting=settings.draft,
    )
    return prepared, load


def _completed(request: R, model: StoredModel) -> tuple[R, Options]:
    """The request with the model's name and defaults, and the options in force."""
    changes: dict[str, object] = {"model": model.name}
    options = model.options
    if isinstance(request, DetokenizeRequest):
        pass
    elif isinstance(request, TokenizeRequest | RenderRequest):
        if request.prompt is not None:
            changes["prompt"], options = _completed(request.prompt, model)
    else:
        changes["options"] = options = request.options.over(model.options)
        if isinstance(request, GenerateRequest) and request.messages is not None:
            changes["messages"] = _conversation(request.messages, model)
    return msgspec.structs.replace(request, **changes), options


def _conversation(messages: tuple[Message, ...], model: StoredModel) -> tuple[Message, ...]:
    """`messages` behind the model's own turns and its system prompt."""
    first = 1 if messages and messages[0].role == "system" else 0
    messages = (*messages[:first], *model.messages, *messages[first:])
    if model.system and not any(m.role == "system" for m in messages):
        return (Message(role="system", content=model.system), *messages)
    return messages
