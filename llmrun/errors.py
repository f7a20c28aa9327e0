"""Every error a person can meet, in one table: its HTTP status, its exit code, its next step.

Code raises `LlmrunError(KIND, "what happened, with the value", ...)`. Each process turns it into
words at one boundary: the command line into `error: WHAT. HOW TO MEND IT`, a dialect into its body.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

from llmrun.types import ErrorInfo


@dataclass(frozen=True)
class Kind:
    """One row: `code` is stable and goes over the wire; `hint` is the usual mend."""

    code: str
    status: int
    exit: int
    hint: str = ""


USAGE = Kind("usage", 400, 2)
INVALID_REQUEST = Kind("invalid_request", 400, 2)
UNSUPPORTED_FIELD = Kind("unsupported_field", 400, 2, "leave the field out")
CONTEXT_LENGTH = Kind(
    "context_length_exceeded", 400, 1, "shorten the prompt, or load the model with more context (--ctx)"
)
CONTEXT_TOO_LARGE = Kind("context_too_large", 400, 4, "ask for less context (--ctx, num_ctx)")
TEMPLATE = Kind("template_error", 400, 1)
NO_TEMPLATE = Kind("no_chat_template", 400, 1, "send a raw prompt (--raw), or give the model a TEMPLATE")
UNAUTHORIZED = Kind("unauthorized", 401, 1, "set LLMRUN_API_KEY")
FORBIDDEN = Kind("forbidden", 403, 1)
UNKNOWN_MODEL = Kind("model_not_found", 404, 3, "llmrun pull NAME")
NOT_FOUND = Kind("not_found", 404, 1)
METHOD_NOT_ALLOWED = Kind("method_not_allowed", 405, 1)
TIMEOUT = Kind("request_timeout", 408, 1, "send it faster, or less of it")
UNSUPPORTED_MEDIA = Kind("unsupported_media_type", 415, 1)
CANCELLED = Kind("cancelled", 499, 130, "")
TOO_LARGE = Kind("request_too_large", 413, 1)
CONFLICT = Kind("conflict", 409, 1)
RATE_LIMITED = Kind("rate_limited", 429, 1, "wait as long as Retry-After says")
BUDGET_SPENT = Kind("token_budget_spent", 429, 1)
OVERLOADED = Kind("overloaded", 503, 1, "try again in a moment")
SHUTTING_DOWN = Kind("shutting_down", 503, 1, "start the daemon again: llmrun serve")
NO_MEMORY = Kind("out_of_memory", 507, 4, "use a smaller quant or a smaller --ctx")
MODEL_LOAD = Kind("model_load_failed", 500, 1)
RUNNER_DIED = Kind("runner_died", 500, 1, "try again; the reason is in llmrun logs")
DOWNLOAD = Kind("download_failed", 502, 1)
DIGEST = Kind("digest_mismatch", 502, 1, "pull again; the damaged part was removed")
BAD_FILE = Kind("bad_file", 422, 1)
DISK = Kind("disk", 507, 1, "free some space")
CONFIG = Kind("config", 500, 2)
DAEMON_UNREACHABLE = Kind("daemon_unreachable", 503, 5, "start it: llmrun serve")
INTERNAL = Kind("internal_error", 500, 1, "please report it, with llmrun logs")

LONGEST = 4000
"""Characters of a message, which may quote what it refuses."""

KINDS = {kind.code: kind for kind in list(globals().values()) if isinstance(kind, Kind)}


class LlmrunError(Exception):
    """An error of a known kind, worded for the person who meets it.

    message  what happened and which value, without a full stop
    hint     what to do next; the kind's own where not given
    field    the request field at fault, as a path (`messages.0.role`)
    details  numbers that a client may want (`prompt_tokens`, `context`, …)
    """

    def __init__(
        self,
        kind: Kind,
        message: str,
        *,
        hint: str | None = None,
        field: str | None = None,
        **details: Any,
    ) -> None:
        message = message if len(message) <= LONGEST else f"{message[:LONGEST]}…"
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.hint = kind.hint if hint is None else hint
        self.field = field and field[:LONGEST]
        self.details = details

    def __str__(self) -> str:
        return f"{self.message}. {self.hint}" if self.hint else self.message

    def info(self) -> ErrorInfo:
        """The same, ready to cross a process border."""
        return ErrorInfo(
            code=self.kind.code,
            message=self.message,
            hint=self.hint,
            field=self.field,
            details=self.details,
        )

    def again(self) -> LlmrunError:
        """A copy to raise: one exception raised in many places would collect the traceback of each."""
        return self.from_info(self.info())

    @classmethod
    def from_info(cls, info: ErrorInfo) -> LlmrunError:
        """The error that `info` describes; an unknown code (a newer peer) becomes an internal one."""
        kind = KINDS.get(info.code, INTERNAL)
        return cls(kind, info.message, hint=info.hint, field=info.field, **info.details)


_WORDS = ("cannot allocate memory", "failed to map segment", "can't start new thread", "bad_alloc")


def is_exhaustion(error: BaseException) -> bool:
    """True for want of memory, also where the loader could not map a library or a thread had no stack."""
    if isinstance(error, MemoryError) or (isinstance(error, OSError) and error.errno == errno.ENOMEM):
        return True
    return isinstance(error, OSError | ImportError | RuntimeError) and tells_of_exhaustion(str(error))


def tells_of_exhaustion(text: str) -> bool:
    """Whether a system's or a library's words say that memory ran out."""
    said = text.lower()
    return any(words in said for words in _WORDS)


def short_of_memory(error: BaseException) -> LlmrunError | None:
    """OVERLOADED where this process had no memory for a request; None where `error` says something else. What
    other requests take they give back, so it may pass."""
    if not is_exhaustion(error):
        return None
    return LlmrunError(OVERLOADED, "the daemon has no memory for this request now", retry_after=5)
