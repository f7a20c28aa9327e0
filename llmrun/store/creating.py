"""A Modelfile laid over a model that is here: what it says wins, what it leaves unsaid stays. Pure."""

from __future__ import annotations

import msgspec

from llmrun.errors import DIGEST, LlmrunError
from llmrun.store.manifest import FileEntry, Manifest, now
from llmrun.store.modelfile import Modelfile


def derive(base: Manifest, modelfile: Modelfile, name: str, files: tuple[FileEntry, ...]) -> Manifest:
    """The model `name` made of `base`, over `files`: its own and what `modelfile` adds.

    Parameters and stops add up; an empty SYSTEM or TEMPLATE
    takes the base's away; messages and license replace the base's where there are any. DIGEST where the
    Modelfile pins other bytes."""
    digest = base.files[0].sha256
    size = sum(file.size for file in base.files if not file.source)
    if modelfile.sha256 and digest and modelfile.sha256 != digest:
        raise LlmrunError(DIGEST, f"{base.name} has the SHA-256 {digest}, not {modelfile.sha256}", hint="")
    if modelfile.size not in (None, size):
        raise LlmrunError(DIGEST, f"{base.name} has {size} bytes, not {modelfile.size}", hint="")
    return msgspec.structs.replace(
        base,
        name=name,
        reference=name,
        created=now(),
        files=files,
        options=modelfile.options.over(base.options),
        system=base.system if modelfile.system is None else modelfile.system or None,
        template=base.template if modelfile.template is None else modelfile.template or None,
        messages=modelfile.messages or base.messages,
        license=modelfile.license or base.license,
    )
