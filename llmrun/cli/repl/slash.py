"""The commands of the REPL: lines that start with a slash and a word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from llmrun.cli.repl import figures, keeping, said, setting
from llmrun.cli.repl.chatting import Bye, Chat
from llmrun.errors import USAGE, LlmrunError

ALIASES = {"?": "help", "exit": "bye"}  # as Ollama's chat has them
_COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?", re.DOTALL)


@dataclass(frozen=True)
class Slash:
    """One command: how it is written, what it does, and the doing."""

    usage: str
    about: str
    run: Callable[[Chat, str], None]


def parse(text: str) -> tuple[str, str] | None:
    """(command, argument) of a line that is a command; None for a message, which may begin with a path."""
    match = _COMMAND.fullmatch(text.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def execute(chat: Chat, name: str, argument: str) -> None:
    """Do it. LlmrunError USAGE for an unknown name or a wrong argument, Bye to leave."""
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "see: /help"
        raise LlmrunError(USAGE, f"there is no command /{name}", hint=hint)
    COMMANDS[name].run(chat, argument)


def _help(chat: Chat, _argument: str) -> None:
    keys = [
        ('""" … """', "several lines; Alt-Enter and a backslash at the end go on too"),
        ("Tab", "completes commands, options, files, models and sessions"),
        ("Ctrl-R", "searches what was typed before"),
        ("Ctrl-C", "stops the answer"),
        ("Ctrl-D", "leaves"),
    ]
    chat.out.fields([*((slash.usage, slash.about) for slash in COMMANDS.values()), *keys])


def _bye(_chat: Chat, _argument: str) -> None:
    raise Bye


COMMANDS = {
    "help": Slash("/help, /?", "this list", _help),
    "system": Slash("/system [TEXT]", "shows or sets the system prompt", setting.system),
    "set": Slash(
        "/set [NAME [VALUE]]",
        f"shows or sets an option; {setting.DEFAULT} leaves it to the model",
        setting.option,
    ),
    "think": Slash(
        "/think [on|off|default|show|hide]",
        "reasoning: whether the model does, and whether it is shown",
        setting.think,
    ),
    "model": Slash("/model [NAME]", "shows the model, or goes on with another", setting.model),
    "show": Slash("/show", "the model, the system prompt and the options in force", setting.show),
    "file": Slash("/file PATH…", "puts text files behind your next message", said.file),
    "retry": Slash("/retry", "asks the last question again", said.retry),
    "edit": Slash("/edit [TEXT]", "takes the last question back to be changed", said.edit),
    "undo": Slash("/undo", "forgets the last question and its answer", said.undo),
    "clear": Slash("/clear", "begins a new conversation; the old one is kept", said.clear),
    "save": Slash("/save [NAME]", "keeps the conversation under a name of yours", keeping.save),
    "load": Slash("/load NAME|FILE", "goes on with a saved conversation", keeping.load),
    "sessions": Slash("/sessions", "the saved conversations", keeping.sessions),
    "export": Slash("/export FILE", "writes the conversation as .json or .md", keeping.export),
    "context": Slash("/context", "how full the model's context is", figures.context),
    "stats": Slash("/stats", "tokens and speed of the last answer", figures.stats),
    "image": Slash("/image", "is refused: no model that sees can be run yet", said.image),
    "bye": Slash("/bye, /exit", "leaves", _bye),
}
