"""Keeps llama.cpp off Intel's AMX unit where its AMX kernels crash.

They do where the library was built by GCC 12 (Debian 12's): its `_tile_loadconfig` tells the
optimiser that 8 of the 64 bytes are read, so the stores of the others are dropped and `ldtilecfg`
faults. A virtual machine that announces the unit without having it ends the same way: every model
whose weights llama.cpp repacks for AMX dies in its first matrix product.

llama.cpp has no switch for AMX, but it asks Linux for the unit first (arch_prctl
ARCH_REQ_XCOMP_PERM) and goes without when refused. Linux refuses while any thread has an alternate
signal stack too small for AMX state (Documentation/arch/x86/xstate.rst). llama.cpp asks once, at the
first model; loading one under a small stack turns AMX off for this process and nothing else.
"""

from __future__ import annotations

import ctypes
import faulthandler
import logging
import os
import platform
import resource
import sys
import warnings
from pathlib import Path
from types import ModuleType

_log = logging.getLogger("llmrun.llama")

# A llama of one layer with random Q8_0 weights, written by tests/support/tiny.py: AMX takes it.
PROBE = Path(__file__).with_name("probe.gguf")
_ROWS = 32  # a single row would take a path without AMX


class _SignalStack(ctypes.Structure):
    _fields_ = (("sp", ctypes.c_void_p), ("flags", ctypes.c_int), ("size", ctypes.c_size_t))


# Larger than Linux's least (2 KiB), smaller than a signal frame with AMX state (over 10 KiB).
_small_stack = ctypes.create_string_buffer(4096)


def announced() -> bool:
    """Whether this is Linux on a CPU that claims to have AMX."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    try:
        return "amx_tile" in Path("/proc/cpuinfo").read_text("ascii", "replace")
    except OSError:
        return False


def works(lib: ModuleType) -> bool:
    """Whether `lib` (llama_cpp.llama_cpp) survives a decode, tried in a fork that a fault kills.

    The fork does nothing but native calls, so that other threads' Python locks do not matter.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # "fork in a multi-threaded process"
        child = os.fork()
    if child == 0:
        status = 1
        try:
            status = _decode_probe(lib)
        finally:
            os._exit(status)
    return os.waitpid(child, 0)[1] == 0


def _decode_probe(lib: ModuleType) -> int:
    faulthandler.disable()  # a crash is expected: no trace, no core file
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    silence = lib.llama_log_callback(lambda *_: None)
    lib.llama_log_set(silence, None)
    model = _load_probe(lib)
    params = lib.llama_context_default_params()
    params.n_ctx = params.n_batch = params.n_ubatch = 2 * _ROWS
    params.n_threads = params.n_threads_batch = 1
    context = lib.llama_init_from_model(model, params)
    tokens = (ctypes.c_int32 * _ROWS)(*range(_ROWS))
    return int(lib.llama_decode(context, lib.llama_batch_get_one(tokens, _ROWS)))


def _load_probe(lib: ModuleType) -> ctypes.c_void_p:
    params = lib.llama_model_default_params()
    model: ctypes.c_void_p = lib.llama_model_load_from_file(str(PROBE).encode(), params)
    return model


def avoid_if_broken(lib: ModuleType) -> bool:
    """Turn AMX off for this process if it is announced but crashes; whether that was done. Call before any
    model loads."""
    if not announced() or works(lib):
        return False
    _log.warning("llama.cpp's AMX kernels crash on this machine: going without them")
    sigaltstack = ctypes.CDLL(None).sigaltstack
    small = _SignalStack(ctypes.addressof(_small_stack), 0, len(_small_stack))
    before = _SignalStack()
    sigaltstack(ctypes.byref(small), ctypes.byref(before))
    lib.llama_model_free(_load_probe(lib))
    sigaltstack(ctypes.byref(before), None)
    return True
