"""What was learnt of the times of a model's steps on this machine, kept in a file for its next start.

The file is JSON: `threads` that decoding steps are best computed with, `seconds` of a step by its rows, and
`prefill`, what prompt tokens cost a step (the parts of `engine.Cost`). It is written beside its place and
renamed; one that is damaged is as good as none.
"""

from __future__ import annotations

import contextlib
import hashlib
import platform
from pathlib import Path
from typing import Annotated

import msgspec

from llmrun.llama import llama_version, system_info
from llmrun.runner.frames import Load
from llmrun.runner.machine import cores
from llmrun.store.disk import write_atomic

Positive = Annotated[float, msgspec.Meta(gt=0)]


class StepTimes(msgspec.Struct, frozen=True):
    """`threads` is None where fewer were never tried, `prefill` where no prompt was computed."""

    threads: Annotated[int, msgspec.Meta(ge=1)] | None = None
    seconds: dict[int, Positive] = {}
    prefill: tuple[float, Positive, Annotated[float, msgspec.Meta(ge=0)]] | None = None


NOTHING = StepTimes()


def file_for(spec: Load) -> Path | None:
    """Where a model's are kept: beside the folder of its KV prefixes. None where nothing is to be kept. Its
    name stands for the model's bytes, the kernels, the settings that change a step, and the machine."""
    if spec.kv_folder is None or not spec.content:
        return None
    decides = (
        *(spec.content, spec.kv_type, spec.kv_layout, spec.flash_attention),
        *(str(spec.gpu_layers), str(spec.threads), str(cores())),
        *(llama_version(), system_info(), platform.node()),
    )
    name = hashlib.sha256("\0".join(decides).encode()).hexdigest()[:32]
    return Path(spec.kv_folder).parent / "steps" / f"{name}.json"


def read(path: Path | None) -> StepTimes:
    """What the file says; nothing where there is none, or it is none of ours."""
    if path is not None:
        with contextlib.suppress(OSError, msgspec.DecodeError):
            return msgspec.json.decode(path.read_bytes(), type=StepTimes)
    return NOTHING


def write(path: Path, times: StepTimes) -> None:
    """Keep them, if the disk lets us."""
    with contextlib.suppress(OSError):
        write_atomic(path, msgspec.json.encode(times))
