"""The native library: loaded once, checked against the release we know, its log taken over."""

from __future__ import annotations

import importlib
import importlib.metadata
import importlib.util
import logging
import os
import re
import sys
from types import ModuleType
from typing import TYPE_CHECKING

from llmrun.errors import MODEL_LOAD, LlmrunError
from llmrun.llama import amx

__all__ = ["ggml", "lib", "llama_version", "mute", "take_error"]

# The struct layouts of the bindings follow one llama.cpp commit; another library under the same
# bindings would be read wrongly without any error. `pyproject.toml` pins the same release.
BINDINGS = "0.3.36"
LIBRARY = "0.5.0-dev"

_log = logging.getLogger("llmrun.llama")


def _check_bindings() -> None:
    found = importlib.metadata.version("llama-cpp-python")
    if found != BINDINGS:
        raise LlmrunError(
            MODEL_LOAD,
            f"llama-cpp-python {found} is installed, but this llmrun needs {BINDINGS}",
            hint=f"pip install llama-cpp-python=={BINDINGS}",
        )


_check_bindings()

# Compute threads wait for each other about a thousand times a step. By default they spin for
# milliseconds, so that one busy neighbour on few cores can make a step ten times as long; spinning for
# microseconds, then sleeping, costs 2 % on a quiet machine (docs/performance.md). Read when OpenMP loads.
os.environ.setdefault("GOMP_SPINCOUNT", "1000")


def _bindings() -> tuple[ModuleType, ModuleType]:
    """`llama_cpp.llama_cpp` and `llama_cpp._ggml` alone. Importing the package would run its own engine,
    which takes time and 3 MB; whoever imports it later gets all of it."""
    spec = None if "llama_cpp" in sys.modules else importlib.util.find_spec("llama_cpp")
    if spec is not None:
        sys.modules["llama_cpp"] = importlib.util.module_from_spec(spec)
    try:
        return importlib.import_module("llama_cpp.llama_cpp"), importlib.import_module("llama_cpp._ggml")
    finally:
        if spec is not None:
            del sys.modules["llama_cpp"]


if TYPE_CHECKING:
    import llama_cpp._ggml as ggml
    import llama_cpp.llama_cpp as lib
else:
    lib, ggml = _bindings()

# enum ggml_log_level in ggml.h; 5 continues the line before. Its info is a
# developer's detail to our users.
_LEVELS = {1: logging.DEBUG, 2: logging.DEBUG, 3: logging.WARNING, 4: logging.ERROR}
_WHERE = re.compile(r"^\w+: (error loading model: )*")  # what stands in front of a reason


class _LogLines:
    """Joins llama.cpp's pieces of text into lines and hands them to our logger."""

    def __init__(self) -> None:
        self._level = logging.DEBUG
        self._text = ""
        self.error = ""
        self.muted = False

    def add(self, level: int, text: str) -> None:
        if level in _LEVELS:
            self._flush()
            self._level = _LEVELS[level]
        self._text += text
        if self._text.endswith("\n"):
            self._flush()

    def _flush(self) -> None:
        if line := self._text.rstrip():
            _log.log(logging.DEBUG if self.muted else self._level, "%s", line)
            if self._level == logging.ERROR and not self.error:
                self.error = line
        self._text = ""


_lines = _LogLines()


@lib.llama_log_callback  # type: ignore[untyped-decorator]  # a ctypes function type
def _on_log(level: int, text: bytes | None, _user_data: object) -> None:
    _lines.add(level, (text or b"").decode("utf-8", "replace"))


# `_on_log` stays referenced by this module for the process's life: native code calls it whenever
# it likes, and a collected callback would crash the process.
lib.llama_log_set(_on_log, None)


def mute(muted: bool) -> None:
    """Log llama.cpp's lines as details: it reports a decode that was told to stop as three errors."""
    _lines.muted = muted


def take_error() -> str:
    """llama.cpp's first line of error since this was last called, without the names of its functions.

    They return only a null pointer; the reason is in the log, and further lines only follow from it.
    """
    lib.llama_log_set(_on_log, None)  # the bindings' own package takes the log when somebody imports it
    line, _lines.error = _lines.error, ""
    return _WHERE.sub("", line) or "no reason given"


def llama_version() -> str:
    """The version that the loaded llama.cpp reports."""
    return bytes(lib.llama_version()).decode()


if llama_version() != LIBRARY:
    raise LlmrunError(
        MODEL_LOAD,
        f"the llama.cpp library loaded is {llama_version()}, but these bindings describe {LIBRARY}",
        hint="unset LLAMA_CPP_LIB_PATH, or reinstall llama-cpp-python",
    )

lib.llama_backend_init()
AMX_AVOIDED = amx.avoid_if_broken(lib)
