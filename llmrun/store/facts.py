"""What a GGUF header means for running the model. In: the headers of its files. Out: `Facts`.

Key names are llama.cpp's (`src/llama-arch.cpp`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from llmrun.errors import BAD_FILE, LlmrunError
from llmrun.store.ggml import FILE_TYPES
from llmrun.store.gguf import GGUFHeader, LongArray, read_header, read_strings
from llmrun.types import Options

ModelKind = Literal["chat", "completion", "embedding"]

_ENCODERS = {
    *("bert", "modern-bert", "nomic-bert", "nomic-bert-moe", "neo-bert", "jina-bert-v2", "jina-bert-v3"),
    *("eurobert", "gemma-embedding", "llama-embed", "t5encoder"),
}
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
    # Pooling 0 is "none": a plain language model may say so.
    if architecture in _ENCODERS or header.integer(f"{architecture}.pooling_type"):
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


def _options(header: GGUFHeader) -> Options:
    """`general.sampling.*`; values that no sampler could use are left out rather than refused, since the
    file was not written by the person who runs it."""
    number, integer = header.number, header.integer
    temperature = number("general.sampling.temp")
    top_k = integer("general.sampling.top_k")
    top_p = number("general.sampling.top_p")
    min_p = number("general.sampling.min_p")
    penalty = number("general.sampling.penalty_repeat")
    last_n = integer("general.sampling.penalty_last_n")
    return Options(
        temperature=temperature if temperature is not None and 0 <= temperature < 100 else None,
        top_k=top_k if top_k is not None and top_k >= 0 else None,
        top_p=top_p if top_p is not None and 0 < top_p <= 1 else None,
        min_p=min_p if min_p is not None and 0 <= min_p <= 1 else None,
        repeat_penalty=penalty if penalty is not None and 0 < penalty < 100 else None,
        repeat_last_n=last_n if last_n is not None and last_n >= -1 else None,
    )
