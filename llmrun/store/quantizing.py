"""A stored model in another number type. In: a model and a type. Out: a new stored model.

llama.cpp does the work in a child process (`llmrun.llama.quantizer`), which loads the result before it
appears. What is under way lies in the store like a pull under way, holds a lock like one, and is swept like
one when it was interrupted.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from llmrun.config import Paths
from llmrun.errors import CONFLICT, INVALID_REQUEST, MODEL_LOAD, LlmrunError
from llmrun.store.disk import require_space, sha256_of, writing
from llmrun.store.facts import facts_of
from llmrun.store.ggml import FILE_TYPES, TENSOR_TYPES
from llmrun.store.gguf import GGUFHeader, read_header
from llmrun.store.manifest import Manifest, now
from llmrun.store.native_child import ChildError, said_by
from llmrun.store.peeking import Peek
from llmrun.store.progress import Meter, PullProgress
from llmrun.store.shelf import Shelf
from llmrun.store.steps import without_mark
from llmrun.store.transports import Fetched

# llama.cpp's own short forms (`tools/quantize`).
_ALIASES = {"Q3_K": "Q3_K_M", "Q4_K": "Q4_K_M", "Q5_K": "Q5_K_M", "MXFP4_MOE": "MXFP4", "FP16": "F16"}
_NOT_WRITTEN = {"NVFP4"}  # llama.cpp reads it and has no quantiser for it
_NUMBERS = {name: number for number, name in FILE_TYPES.items() if name not in _NOT_WRITTEN}
_LOSSLESS = {"F32", "F16", "BF16"}
_NEED_IMATRIX = {"IQ1_S", "IQ1_M", "IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ2_M", "IQ3_XXS", "IQ3_XS", "Q2_K_S"}
_MARGIN = 1.25  # some tensors are kept in larger types


@dataclass(frozen=True)
class Wish:
    """kind: a type of `type_names`. name: what the new model is called. again: allow types that lose a second
    time. imatrix: a file that says which weights matter."""

    kind: str
    name: str
    again: bool = False
    imatrix: Path | None = None


def type_names() -> list[str]:
    """Every type that can be written, the short forms left out."""
    return list(_NUMBERS)


def type_of(text: str) -> str:
    """The type that `text` means, in any case. INVALID_REQUEST where it means none."""
    name = _ALIASES.get(text.upper(), text.upper())
    if name not in _NUMBERS:
        raise LlmrunError(
            INVALID_REQUEST, f"there is no type {text!r}", hint=f"there are: {', '.join(type_names())}"
        )
    return name


def default_name(model: str, kind: str) -> str:
    """What `model` is called in another type: the type takes the place of a type in its tag."""
    stem, _, tag = model.rpartition("/")[2].removesuffix(".gguf").lower().partition(":")
    old = tag.upper() in {*FILE_TYPES.values(), *_ALIASES}
    return f"{stem}:{tag}-{kind}" if tag and not old else f"{stem}:{kind}"


def check(headers: Sequence[GGUFHeader], wish: Wish, model: str) -> None:
    """INVALID_REQUEST where the wish would lose for no gain, or llama.cpp could not fulfil it."""
    types = {tensor.type.name for header in headers for tensor in header.tensors if len(tensor.shape) > 1}
    quantised = sorted(types - _LOSSLESS)
    if quantised and not wish.again:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{model} is quantised already ({', '.join(quantised)}), so {wish.kind} would lose a second time",
            hint="start from an F16, BF16 or F32 file, or allow it: --again",
        )
    if wish.kind in _NEED_IMATRIX and wish.imatrix is None:
        raise LlmrunError(
            INVALID_REQUEST,
            f"{wish.kind} is useless without an importance matrix",
            hint="name one: --imatrix FILE",
        )


class Quantizer:
    """Writes into one models folder."""

    def __init__(self, paths: Paths) -> None:
        self._shelf = Shelf(paths.models)

    def run(self, peek: Peek, wish: Wish, on_progress: Callable[[PullProgress], None] | None = None) -> str:
        """The name of the new model; blocks. An interrupt ends the child and leaves nothing."""
        check(peek.headers, wish, without_mark(peek.model.name))
        shelf, meter = self._shelf, Meter(on_progress)
        key = f"quantize-{hashlib.sha256(wish.name.encode()).hexdigest()[:16]}"
        waiting = f"{without_mark(wish.name)} is being made already; waiting for it"
        with writing(shelf.models), shelf.key_lock(key, lambda: meter.note(waiting)):
            if shelf.manifests.exists(wish.name):
                raise LlmrunError(CONFLICT, f"the name {wish.name} is taken", hint="choose another: -o NAME")
            staging = shelf.staging(key)
            try:
                stem = without_mark(wish.name).partition(":")[0].replace("/", "-")
                target = staging / f"{stem}-{wish.kind}.gguf"
                require_space(staging, _expected(peek.headers, wish.kind))
                self._child(peek.model.path, target, wish, peek.model.size, meter)
                digest = sha256_of(target)
                facts = facts_of([read_header(target)], target)
                with shelf.lock():
                    files = shelf.take_in([Fetched(target, digest)], staging)
                    base = shelf.manifests.readable(peek.model.name)
                    others = [e for e in base.files if e.role != "weights"] if base else []
                    model = peek.model
                    shelf.manifests.put(
                        Manifest(
                            name=wish.name,
                            reference=wish.name,
                            source=str(shelf.path(files[0])),
                            created=now(),
                            files=(*files, *others),
                            facts=facts,
                            options=model.options,
                            system=model.system,
                            template=model.template,
                            messages=model.messages,
                            license=model.license,
                        )
                    )
            finally:
                shutil.rmtree(staging, ignore_errors=True)
        return wish.name

    def _child(self, source: Path, target: Path, wish: Wish, size: int, meter: Meter) -> None:
        job = {
            "source": str(source),
            "target": str(target),
            "ftype": _NUMBERS[wish.kind],
            "again": wish.again,
            "imatrix": str(wish.imatrix.absolute()) if wish.imatrix else None,
        }
        meter.expect(size)
        try:
            for said in said_by("llmrun.llama.quantizer", job):
                meter.at(target.name, size * said["step"] // said["of"], size, "quantize")
        except ChildError as error:
            raise LlmrunError(MODEL_LOAD, f"{wish.kind} of {source.name} failed: {error}", hint="") from None


def _expected(headers: Sequence[GGUFHeader], kind: str) -> int:
    """Bytes that the new file will have at most, nearly."""
    sizes = {one.name: one.size / one.block for one in TENSOR_TYPES.values()}
    per_weight = next(
        (sizes[name] for end in range(len(kind), 1, -1) if (name := kind[:end].rstrip("_")) in sizes), 4.0
    )
    return int(_MARGIN * per_weight * sum(header.parameters for header in headers))
