"""Commands that change what was said, or what is said next."""

from __future__ import annotations

import shlex
from datetime import datetime
from pathlib import Path

from llmrun.cli.prompt import no_images, read_text
from llmrun.cli.repl.chatting import Chat
from llmrun.errors import USAGE, LlmrunError


def file(chat: Chat, argument: str) -> None:
    attached = chat.conversation.attached
    for path in paths(argument):
        text = read_text(path)
        attached.append(text)
        chat.out.note(f"{path} goes with your next message ({len(text):,} characters)")
    if not argument:
        chat.out.note(f"{len(attached)} files go with your next message")


def paths(argument: str) -> list[Path]:
    """The files that are named: a path that is there as it stands, or several, quoted as in a shell."""
    if argument and Path(argument).expanduser().exists():
        return [Path(argument)]
    try:
        return [Path(word) for word in shlex.split(argument)]
    except ValueError as error:
        raise LlmrunError(USAGE, f"the files cannot be told apart: {error}", hint="close the quote") from None


def image(_chat: Chat, _argument: str) -> None:
    raise no_images("/image")


def _taken_back(chat: Chat) -> str:
    question = chat.conversation.take_back()
    if question is None:
        raise LlmrunError(USAGE, "nothing has been asked yet", hint="type a message")
    return question


def retry(chat: Chat, _argument: str) -> None:
    chat.ask = _taken_back(chat)


def edit(chat: Chat, argument: str) -> None:
    question = _taken_back(chat)
    if argument:
        chat.ask = argument
    else:
        chat.draft = question
    chat.keep()


def undo(chat: Chat, _argument: str) -> None:
    question = " ".join(_taken_back(chat).split())
    chat.keep()
    chat.out.note(f"forgotten: {question if len(question) < 60 else question[:59] + '…'}")


def clear(chat: Chat, _argument: str) -> None:
    """A person's next words begin another session, so that the one that is kept stays as it is. From a pipe
    they go into the one that was named: that is how a script empties it."""
    talk = chat.conversation
    kept = chat.name if chat.interactive and (talk.turns or talk.unanswered) else None
    if kept:
        name = chat.sessions.new_name(datetime.now())
        chat.sessions.hold(name)
        chat.name = name
    talk.clear()
    chat.out.note(f"the conversation starts anew{f'; what was said is kept as {kept}' if kept else ''}")
