"""`/api/create`: the body to a Modelfile. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import msgspec

from llmrun.api.bounds import INT32
from llmrun.api.ollama.model_bodies import CreateBody
from llmrun.store import Modelfile, parse_modelfile, parse_reference
from llmrun.store.reference import FileRef, Reference
from llmrun.types import Message, Options


def to_modelfile(body: CreateBody, blob: Path | None, adapters: Sequence[Path] = ()) -> Modelfile:
    """What the body says of the model. `blob` is the file that `files` names, `adapters` those of its field
    of that name. LlmrunError where a reference or the text of a Modelfile is none."""
    if body.modelfile:
        return parse_modelfile(body.modelfile)
    source: Reference = parse_reference(body.from_ or "") if blob is None else FileRef(str(blob))
    license_ = body.license or ""
    return Modelfile(
        sources=(source,),
        options=_options(body),
        template=body.template,
        system=body.system,
        messages=tuple(Message(role=m.role, content=m.content or "") for m in body.messages or ()),
        adapters=tuple(FileRef(str(path)) for path in adapters),
        license=license_ if isinstance(license_, str) else "\n\n".join(license_),
    )


def _options(body: CreateBody) -> Options:
    options = body.parameters.options() if body.parameters else Options()
    # No limit is what holds where a model sets none.
    return msgspec.structs.replace(options, max_tokens=None) if options.max_tokens == INT32 else options
