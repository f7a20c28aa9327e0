"""Conversations that are kept: one JSON file each in the state folder, written whole or not at all.

A session that a chat has open is locked, so that two chats cannot write over one another.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import msgspec
from filelock import FileLock, Timeout

from llmrun.cli.repl.conversation import Conversation
from llmrun.errors import BAD_FILE, CONFLICT, NOT_FOUND, USAGE, LlmrunError
from llmrun.store.disk import is_held, write_atomic, writing
from llmrun.types import Message, Options

VERSION = 1
_TITLE = 50  # characters of a first message that a session is shown by
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class Saved(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A conversation as a file holds it."""

    version: int
    model: str
    system: str | None = None
    options: Options = Options()
    think: bool | None = None
    turns: list[Message] = []
    unanswered: str | None = None

    @classmethod
    def of(cls, talk: Conversation) -> Saved:
        return cls(
            version=VERSION,
            model=talk.model,
            system=talk.system,
            options=talk.options,
            think=talk.think,
            turns=list(talk.turns),
            unanswered=talk.unanswered,
        )

    def conversation(self) -> Conversation:
        return Conversation(
            self.model, self.system, self.options, self.think, list(self.turns), self.unanswered
        )


@dataclass(frozen=True)
class Listed:
    """A session in a list. `title`: the first words that were said in it."""

    name: str
    saved: datetime
    model: str
    answers: int
    title: str


def encode(talk: Conversation) -> bytes:
    """The conversation as JSON that `decode` reads."""
    return msgspec.json.format(msgspec.json.encode(Saved.of(talk)), indent=2) + b"\n"


def decode(data: bytes, where: str) -> Conversation:
    """LlmrunError BAD_FILE where it is no conversation, or of a later version."""
    try:
        saved = msgspec.json.decode(data, type=Saved)
    except msgspec.DecodeError as error:
        raise LlmrunError(BAD_FILE, f"{where} is no saved chat: {error}", hint="") from None
    if saved.version != VERSION:
        raise LlmrunError(
            BAD_FILE, f"{where} is of version {saved.version}, this reads {VERSION}", hint="update llmrun"
        )
    roles = [message.role for message in saved.turns]
    if roles != ["user", "assistant"] * (len(roles) // 2):
        raise LlmrunError(BAD_FILE, f"the turns in {where} are not user and assistant in turn", hint="")
    return saved.conversation()


class Sessions:
    """The folder of sessions. Everything raises LlmrunError, also where the disk refuses."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock: FileLock | None = None

    def path(self, name: str) -> Path:
        """The file of a session. LlmrunError USAGE for a name that can be none."""
        if not _NAME.fullmatch(name):
            raise LlmrunError(
                USAGE,
                f"{name!r} is no name for a session",
                hint="use letters, digits, dots, underscores and dashes, 64 at most",
            )
        return self._folder / f"{name}.json"

    def exists(self, name: str) -> bool:
        return self.path(name).exists()

    def hold(self, name: str) -> None:
        """Keep this session for this chat alone, and no other. LlmrunError CONFLICT where it is open."""
        path = self.path(name)
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            lock = FileLock(path.with_suffix(".lock"), timeout=0, mode=0o600)
            try:
                lock.acquire()
            except Timeout:
                raise LlmrunError(
                    CONFLICT,
                    f"the session {name} is open in another chat",
                    hint="close it there, or begin a new one",
                ) from None
        self.let_go()
        self._lock = lock

    def let_go(self) -> None:
        """Others may have the session again."""
        if self._lock:
            self._lock.release()
            self._lock = None

    def save(self, name: str, talk: Conversation) -> Path:
        """Write it, readable for its owner alone; where it lies."""
        path = self.path(name)
        with writing(self._folder):
            self._folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            write_atomic(path, encode(talk))
        return path

    def load(self, name: str) -> Conversation:
        path = self.path(name)
        try:
            return decode(path.read_bytes(), str(path))
        except FileNotFoundError:
            raise LlmrunError(NOT_FOUND, f"there is no session {name!r}", hint="see: /sessions") from None

    def all(self) -> list[Listed]:
        """The newest first. Files that are no sessions are left out."""
        found = []
        for path in self._folder.glob("*.json"):
            try:
                talk = decode(path.read_bytes(), str(path))
                saved = datetime.fromtimestamp(path.stat().st_mtime)
            except (LlmrunError, OSError):
                continue
            first = talk.turns[0].content if talk.turns else talk.unanswered or ""
            title = " ".join(first.split())
            title = title if len(title) <= _TITLE else f"{title[: _TITLE - 1]}…"
            found.append(Listed(path.stem, saved, talk.model, len(talk.turns) // 2, title))
        return sorted(found, key=lambda listed: listed.saved, reverse=True)

    def new_name(self, now: datetime) -> str:
        """A name that no session has, from the time."""
        base = name = f"{now:%Y-%m-%d-%H%M}"
        number = 1
        while self.exists(name) or is_held(self.path(name).with_suffix(".lock")):
            number += 1
            name = f"{base}-{number}"
        return name
