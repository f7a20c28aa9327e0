"""What a GGUF header means for running the model. In: the headers of its files. Out: `Facts`.

Key names are llama.cpp's (`src/llama-arch.cpp`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

import msgspec

from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.architectures import ENCODERS
from llmrun.store.ggml import FILE_TYPES
from llmrun.store.gguf import GGUFHeader, LongArray, read_header, read_strings
from llmrun.types import Options
from llmrun.types.option_text import option_value

ModelKind = Literal["chat", "completion", "embedding", "reranker"]

VECTOR_KINDS: tuple[ModelKind, ...] = ("embedding", "reranker")
"""The kinds that write no text."""
_RANK = 4  # enum llama_pooling_type in llama.h
_NO_MODEL = {"clip": "a vision projector", "adapter": "an adapter", "imatrix": "an importance matrix"}


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """quant: the file type's name, or that of the type holding most weights; parameters: weights over all
    files; ctx_train: tokens, 0 where the file does not say; options: the sampling its makers advise."""

    architecture: str
    quant: str
    parameters: int
    ctx_train: int
    kind: ModelKind
    license: str
    options: Options


def read_facts(files: Sequence[Path]) -> Facts:
    """The facts of a model whose first file is `files[0]`. BAD_FILE where it is no model."""
    return facts_of([read_header(path) for path in files], files[0])


def facts_of(headers: Sequence[GGUFHeader], path: Path) -> Facts:
    """As `read_facts`, from headers already read; `path` only names the file in errors."""
    first = headers[0]
    architecture = first.text("general.architecture") or ""
    other = _NO_MODEL.get(architecture) or _NO_MODEL.get(first.text("general.type") or "")
    if other or not architecture:
        raise LlmrunError(
            BAD_FILE,
            f"{path} is {other or 'a GGUF file that names no architecture'}, not a model",
            hint="name the model's own file",
        )
    return Facts(
        architecture=architecture,
        quant=_quant(headers),
        parameters=sum(header.parameters for header in headers),
        ctx_train=first.integer(f"{architecture}.context_length") or 0,
        kind=_kind(first, architecture),
        license=first.text("general.license") or "",
        options=_options(first),
    )


def special_tokens(path: Path, header: GGUFHeader) -> dict[str, str]:
    """`bos_token` and `eos_token` as text, those that the file names. `header` was read from `path`."""
    ids = {name: header.integer(f"tokenizer.ggml.{name}_id") for name in ("bos_token", "eos_token")}
    tokens = header.metadata.get("tokenizer.ggml.tokens")
    texts: dict[int, str] = {}
    if isinstance(tokens, LongArray):
        texts = read_strings(path, tokens, {i for i in ids.values() if i is not None})
    elif isinstance(tokens, tuple):
        texts = {i: str(token) for i, token in enumerate(tokens)}
    return {name: texts[i] for name, i in ids.items() if i is not None and i in texts}


def _kind(header: GGUFHeader, architecture: str) -> ModelKind:
    pooling = header.integer(f"{architecture}.pooling_type")
    if pooling == _RANK:
        return "reranker"
    # Pooling 0 is "none": a plain language model may say so.
    if architecture in ENCODERS or pooling:
        return "embedding"
    return "chat" if header.text("tokenizer.chat_template") else "completion"


def _quant(headers: Sequence[GGUFHeader]) -> str:
    file_type = headers[0].integer("general.file_type")
    if file_type in FILE_TYPES:
        return FILE_TYPES[file_type]
    sizes: Counter[str] = Counter()
    for header in headers:
        for tensor in header.tensors:
            sizes[tensor.type.name] += tensor.size
    return sizes.most_common(1)[0][0] if sizes else ""


# Keys of llama.cpp's llama-arch.cpp (general.sampling.*) and the options they set.
_SAMPLING = {
    "temp": "temperature",
    "top_k": "top_k",
    "top_p": "top_p",
    "min_p": "min_p",
    "xtc_probability": "xtc_probability",
    "xtc_threshold": "xtc_threshold",
    "penalty_repeat": "repeat_penalty",
    "penalty_last_n": "repeat_last_n",
    "mirostat": "mirostat",
    "mirostat_tau": "mirostat_tau",
    "mirostat_eta": "mirostat_eta",
    "sequence": "samplers",
}


def _options(header: GGUFHeader) -> Options:
    """`general.sampling.*`; values that no sampler could use are left out rather than refused, since the
    file was not written by the person who runs it."""
    found = {}
    for key, option in _SAMPLING.items():
        value = header.metadata.get(f"general.sampling.{key}")
        if isinstance(value, int | float | str):
            with suppress(ValueError):
                found[option] = option_value(option, str(value))
    return Options(**found)
