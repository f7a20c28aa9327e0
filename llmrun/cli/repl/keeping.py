"""Commands that keep conversations, and bring them back."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from llmrun.cli.repl import sessions as kept
from llmrun.cli.repl.chatting import Chat
from llmrun.cli.repl.conversation import Conversation
from llmrun.errors import CONFLICT, USAGE, LlmrunError
from llmrun.store.disk import write_atomic, writing


def save(chat: Chat, argument: str) -> None:
    if argument and argument != chat.name:
        if chat.sessions.exists(argument):
            raise LlmrunError(
                CONFLICT, f"there is a session {argument!r} already", hint="choose another name"
            )
        chat.sessions.hold(argument)
        chat.name = argument
    if not chat.name:
        raise LlmrunError(USAGE, "/save has no name", hint="write one after it")
    path = chat.sessions.save(chat.name, chat.conversation)
    chat.out.note(f"saved as {chat.name} ({path})")


def load(chat: Chat, argument: str) -> None:
    if not argument:
        raise LlmrunError(USAGE, "/load has no name", hint="see: /sessions")
    if "/" in argument or argument.endswith(".json"):
        path = Path(argument).expanduser()
        try:
            talk = kept.decode(path.read_bytes(), argument)
        except OSError as error:
            raise LlmrunError(USAGE, f"cannot read {path}: {error.strerror}", hint="check the path") from None
    else:
        talk = chat.sessions.load(argument)
        if argument != chat.name:
            chat.sessions.hold(argument)
        chat.name = argument
    chat.obtain(talk.model)
    chat.conversation = talk
    chat.out.note(resumed(argument, talk))


def resumed(name: str, talk: Conversation) -> str:
    """What a person is told who goes on with a conversation."""
    count = len(talk.turns) // 2
    told = f"{name}: {count} answer{'' if count == 1 else 's'} by {talk.model}"
    return f"{told}; the last question has none, /retry asks it again" if talk.unanswered else told


def sessions(chat: Chat, _argument: str) -> None:
    columns = {
        "NAME": lambda row: f"{row['name']}{' *' if row['name'] == chat.name else ''}",
        "SAVED": lambda row: f"{row['saved']:%Y-%m-%d %H:%M}",
        "MODEL": lambda row: str(row["model"]),
        "ANSWERS": lambda row: str(row["answers"]),
        "BEGINS": lambda row: str(row["title"]),
    }
    listed = chat.sessions.all()
    if listed:
        chat.out.records([asdict(each) for each in listed], columns)
    else:
        chat.out.note("there are none yet")


def export(chat: Chat, argument: str) -> None:
    path = Path(argument).expanduser()
    forms = {".json": kept.encode, ".md": as_markdown}
    if not argument or path.suffix not in forms:
        raise LlmrunError(
            USAGE, f"/export {argument!r} names no .json or .md file", hint="such as /export chat.md"
        )
    if path.exists():
        raise LlmrunError(CONFLICT, f"{path} is there already", hint="choose another name")
    with writing(path.parent):
        write_atomic(path, forms[path.suffix](chat.conversation))
    chat.out.note(f"written to {path}")


def as_markdown(talk: Conversation) -> bytes:
    """The conversation for people to read."""
    parts = [f"# Chat with {talk.model}"]
    if talk.system:
        parts.append(f"**System prompt:** {talk.system}")
    names = {"user": "You", "assistant": talk.model}
    for message in talk.turns:
        parts.append(f"## {names[message.role]}")
        if message.reasoning:
            parts.append("\n".join(f"> {line}".rstrip() for line in message.reasoning.strip().splitlines()))
        parts.append(message.content.strip())
    if talk.unanswered:
        parts += ["## You", talk.unanswered.strip()]
    return ("\n\n".join(parts) + "\n").encode()
