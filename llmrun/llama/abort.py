"""How a computation that llama.cpp is at is ended from another thread."""

from __future__ import annotations

import ctypes

from llmrun.llama.library import lib, mute


class AbortFlag:
    """Ends a running decode from another thread: it returns ABORTED before its next operation.

    llama.cpp asks a callback before each of some thousand operations a step, which must not cost a
    turn of the interpreter. C's `strlen` over two bytes, flag and NUL, is that callback.
    """

    def __init__(self) -> None:
        self._bytes = ctypes.create_string_buffer(2)

    def set(self) -> None:
        mute(True)
        self._bytes[0] = b"\1"

    def clear(self) -> None:
        self._bytes[0] = b"\0"
        mute(False)

    def install(self, params: ctypes.Structure) -> None:
        """Put the callback into context params. The flag must outlive the context."""
        strlen = ctypes.cast(ctypes.CDLL(None).strlen, ctypes.c_void_p)
        params.abort_callback = lib.ggml_abort_callback(strlen.value or 0)
        params.abort_callback_data = ctypes.addressof(self._bytes)
