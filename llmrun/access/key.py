"""An API key: how one is made, what is kept of it, what it allows. Pure.

A key holds 256 random bits, so one round of SHA-256 hides it: there is nothing to guess that a slow hash
would make slower.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Iterable
from fnmatch import fnmatchcase

import msgspec

PREFIX = "llmrun_"
"""What every key begins with, so that programs that look for leaked secrets know one."""

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class ApiKey(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is kept of a key: enough to know it again, not to use it.

    id                   of the record: a name that is given again gets another
    models               patterns of the models it may use (`*` and `?` as in a shell); empty: all
    requests_per_minute  None: as many as it likes
    tokens_per_day       prompt and answers together, from midnight to midnight UTC; None: as many as it likes
    admin                whether it may also change what models there are, and end the daemon
    created, revoked     unix seconds
    """

    id: str
    name: str
    sha256: str
    created: float
    models: tuple[str, ...] = ()
    requests_per_minute: int | None = None
    tokens_per_day: int | None = None
    admin: bool = False
    revoked: float | None = None

    def allows(self, *names: str) -> bool:
        """Whether it may use the model that has all of these names."""
        return not self.models or any(fnmatchcase(name, each) for name in names for each in self.models)


def new_secret() -> str:
    """A key as its user gets it."""
    return PREFIX + secrets.token_urlsafe(32)


def digest(secret: str) -> str:
    """What is kept in a secret's place."""
    return hashlib.sha256(secret.encode()).hexdigest()


def find(keys: Iterable[ApiKey], secret: str) -> ApiKey | None:
    """The key that `secret` is, if it is one that is not revoked. Takes the same time whichever it is."""
    given, found = digest(secret), None
    for key in keys:
        if hmac.compare_digest(key.sha256, given) and key.revoked is None:
            found = key
    return found


def is_name(text: str) -> bool:
    """Whether `text` can be a key's name: it is shown in tables and in metrics."""
    return _NAME.fullmatch(text) is not None
