"""A model's file in another number type: `python -m llmrun.llama.quantizer JOB`, in a process of its own.

In: a `Job` as JSON. Out, on stdout, one JSON object a line: {"step": i, "of": n} while tensors are written,
then {"done": true} once the new file has been loaded and has computed a token, or {"error": …}. The process
ends at once when its stdin does, so it never outlives who asked for it.
"""

from __future__ import annotations

import ctypes
import json
import logging
import os
import re
import sys
import threading
from pathlib import Path

import msgspec
import numpy as np

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama.batch import Batch
from llmrun.llama.context import Context, ContextSettings, DecodeStatus
from llmrun.llama.imatrix import Numbers, read_imatrix
from llmrun.llama.library import lib, take_error
from llmrun.llama.model import Model

_STEP = re.compile(r"\[\s*(\d+)/\s*(\d+)\]")


class Job(msgspec.Struct, frozen=True, kw_only=True):
    """source: the first shard. ftype: llama.cpp's number of the file type. again: also from types that lost
    precision already. imatrix: a file of importances."""

    source: str
    target: str
    ftype: int
    again: bool = False
    imatrix: str | None = None
    threads: int = 0


def main(text: str) -> int:
    threading.Thread(target=_end_with_stdin, daemon=True).start()
    logging.getLogger("llmrun.llama").addHandler(_Steps())
    logging.getLogger("llmrun.llama").setLevel(logging.DEBUG)
    logging.getLogger("llmrun.llama").propagate = False
    try:
        job = msgspec.json.decode(text, type=Job)
        _quantize(job)
        _try_out(Path(job.target))
    except LlmrunError as error:
        _say({"error": error.message})
        return 1
    _say({"done": True})
    return 0


class _Steps(logging.Handler):
    """Turns llama.cpp's line for each tensor into a step."""

    def emit(self, record: logging.LogRecord) -> None:
        if match := _STEP.search(record.getMessage()):
            _say({"step": int(match[1]), "of": int(match[2])})


def _say(what: dict[str, object]) -> None:
    print(json.dumps(what), flush=True)


def _end_with_stdin() -> None:
    sys.stdin.buffer.read()
    os._exit(1)


def _quantize(job: Job) -> None:
    params = lib.llama_model_quantize_default_params()
    params.nthread = job.threads
    params.ftype = job.ftype
    params.allow_requantize = job.again
    held = None  # the matrix must outlive the call
    if job.imatrix:
        held = _native(read_imatrix(Path(job.imatrix)))
        params.imatrix = ctypes.cast(held[0], type(params.imatrix))
    take_error()
    code = lib.llama_model_quantize(job.source.encode(), job.target.encode(), ctypes.byref(params))
    del held
    if code:
        raise LlmrunError(MODEL_LOAD, f"llama.cpp cannot quantise it: {take_error()}")


def _native(
    matrix: dict[str, Numbers],
) -> tuple[ctypes.Array[lib.llama_model_imatrix_data], list[object]]:
    """The matrix as llama.cpp takes it, ended by a nameless entry; and what must stay alive with it."""
    kind = lib.llama_model_imatrix_data
    entries = (kind * (len(matrix) + 1))()
    alive: list[object] = []
    for entry, (name, values) in zip(entries, matrix.items(), strict=False):
        raw, data = name.encode(), np.ascontiguousarray(values, np.float32)
        entry.name = raw
        entry.data = data.ctypes.data_as(ctypes.POINTER(ctypes.c_float))
        entry.size = data.size
        alive += [raw, data]
    return entries, alive


def _try_out(path: Path) -> None:
    """Load the new file and, where it is a model that writes, compute one token. Raises where it cannot."""
    model = Model(path, gpu_layers=0)
    try:
        if model.unservable:
            return
        context = Context(model, ContextSettings(ctx=64, batch=1, slots=1, threads=1, threads_batch=1))
        batch = Batch(1)
        batch.add(np.array([model.vocab.bos or 0], np.int32), 0, 0, outputs=1)
        if context.decode(batch) is not DecodeStatus.OK or not np.isfinite(context.logits(0)).all():
            raise LlmrunError(MODEL_LOAD, "the new file loads, but computes no numbers")
    finally:
        model.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
