"""Who sends a request, so that askers can take turns: told from its key, its address and its program.

The name goes along with the request's task, not through every dialect: none of them has a say in it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TypeVar

import msgspec

from llmrun.types import AnyRequest, GenerateRequest

R = TypeVar("R", bound=AnyRequest)

_asker: ContextVar[str] = ContextVar("asker", default="")


def note_asker(address: str, headers: Mapping[str, str]) -> None:
    """Remember for this task who asks. `headers` has lower-case names; the key is not kept in clear."""
    told = (headers.get(name, "") for name in ("authorization", "x-api-key", "user-agent"))
    _asker.set(hashlib.sha256("\0".join((address, *told)).encode()).hexdigest()[:16])


def of_asker(request: R) -> R:
    """The request with the asker's name; a user that the body names is one of the asker's."""
    if not isinstance(request, GenerateRequest):
        return request
    return msgspec.structs.replace(request, client=f"{_asker.get()} {request.client}")
