"""The file of the API keys: read by the daemon, changed by `llmrun keys`. No secret is in it.

A revoked key stays in it, so that what it used can be told, and so that a daemon whose last key was revoked
does not open to everybody.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from llmrun.access.key import ApiKey, digest, is_name, new_secret
from llmrun.config import Paths
from llmrun.errors import CONFIG, CONFLICT, NOT_FOUND, USAGE, LlmrunError
from llmrun.store.disk import locked, write_atomic, writing


class _File(msgspec.Struct, frozen=True):
    keys: tuple[ApiKey, ...] = ()


class Keyring:
    """The keys on disk. Every reading looks whether the file changed, which costs microseconds."""

    def __init__(self, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._seen: tuple[int, ...] | None = None
        self._keys: tuple[ApiKey, ...] = ()

    @classmethod
    def of(cls, paths: Paths) -> Keyring:
        """The keys of a user's data folder."""
        return cls(paths.config / "keys.json")

    def entries(self) -> tuple[ApiKey, ...]:
        """All keys, revoked ones too, oldest first. LlmrunError CONFIG where the file is damaged."""
        seen = self._state()
        if seen != self._seen:
            self._keys = self._read()
            self._seen = seen
        return self._keys

    def create(
        self,
        name: str,
        *,
        models: tuple[str, ...] = (),
        requests_per_minute: int | None = None,
        tokens_per_day: int | None = None,
        admin: bool = False,
    ) -> str:
        """A new key, in clear: it cannot be had again. LlmrunError USAGE, CONFLICT, DISK."""
        if not is_name(name):
            raise LlmrunError(
                USAGE,
                f"{name[:80]!r} cannot be a key's name",
                hint="use up to 64 letters, digits, dots, dashes and underscores",
            )
        secret = new_secret()
        key = ApiKey(
            id=secrets.token_hex(6),
            name=name,
            sha256=digest(secret),
            created=self._clock(),
            models=models,
            requests_per_minute=requests_per_minute,
            tokens_per_day=tokens_per_day,
            admin=admin,
        )

        def added(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            if any(each.name == name and each.revoked is None for each in keys):
                raise LlmrunError(
                    CONFLICT,
                    f"there is a key {name!r} already",
                    hint=f"revoke it first: llmrun keys revoke {name}",
                )
            return (*(each for each in keys if each.name != name), key)

        self._change(added)
        return secret

    def revoke(self, name: str) -> None:
        """The key is refused from now on. LlmrunError NOT_FOUND, DISK."""

        def without(keys: tuple[ApiKey, ...]) -> tuple[ApiKey, ...]:
            if not any(each.name == name and each.revoked is None for each in keys):
                known = ", ".join(each.name for each in keys if each.revoked is None) or "none"
                raise LlmrunError(NOT_FOUND, f"there is no key {name!r}", hint=f"keys in use: {known}")
            now = self._clock()
            return tuple(
                msgspec.structs.replace(each, revoked=now) if each.name == name else each for each in keys
            )

        self._change(without)

    def _change(self, change: Callable[[tuple[ApiKey, ...]], tuple[ApiKey, ...]]) -> None:
        with writing(self.path.parent), locked(self.path.with_suffix(".lock"), lambda: None):
            text = msgspec.json.format(msgspec.json.encode(_File(change(self.entries()))))
            write_atomic(self.path, text)  # made by mkstemp: nobody else may read it

    def _state(self) -> tuple[int, ...]:
        try:
            stat = self.path.stat()
        except FileNotFoundError:
            return ()
        except OSError as error:
            raise self._damaged(error) from None
        return (stat.st_mtime_ns, stat.st_size, stat.st_ino)

    def _read(self) -> tuple[ApiKey, ...]:
        try:
            return msgspec.json.decode(self.path.read_bytes(), type=_File).keys
        except FileNotFoundError:
            return ()
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise self._damaged(error) from None

    def _damaged(self, error: Exception) -> LlmrunError:
        return LlmrunError(
            CONFIG,
            f"the API keys in {self.path} cannot be read: {error}",
            hint="mend the file, or remove it and create the keys anew",
        )
