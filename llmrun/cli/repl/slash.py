"""The commands of the REPL: lines that start with a slash and a word."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable
from dataclasses import dataclass

from llmrun.cli.options import describe, option_name, parse_option
from llmrun.cli.output import Output
from llmrun.cli.repl.conversation import Conversation
from llmrun.errors import USAGE, LlmrunError

DEFAULT = "default"
ALIASES = {"?": "help", "exit": "bye"}  # as Ollama's chat has them
_COMMAND = re.compile(r"/([a-z]+|\?)(?:\s+(.*))?", re.DOTALL)


class Bye(Exception):
    """The person wants to leave."""


@dataclass(frozen=True)
class Slash:
    """One command: how it is written, what it does, and the doing."""

    usage: str
    about: str
    run: Callable[[Conversation, Output, str], None]


def parse(text: str) -> tuple[str, str] | None:
    """(command, argument) of a line that is a command; None for a message, which may begin with a path."""
    match = _COMMAND.fullmatch(text.strip())
    return (match[1], (match[2] or "").strip()) if match else None


def execute(conversation: Conversation, out: Output, name: str, argument: str) -> None:
    """Do it. LlmrunError USAGE for an unknown name or a wrong argument, Bye to leave."""
    name = ALIASES.get(name, name)
    if name not in COMMANDS:
        near = difflib.get_close_matches(name, COMMANDS, n=1)
        hint = f"did you mean /{near[0]}?" if near else "see: /help"
        raise LlmrunError(USAGE, f"there is no command /{name}", hint=hint)
    COMMANDS[name].run(conversation, out, argument)


def _help(_conversation: Conversation, out: Output, _argument: str) -> None:
    keys = [
        ('""" … """', "several lines; Alt-Enter and a backslash at the end go on too"),
        ("Ctrl-C", "stops the answer"),
        ("Ctrl-D", "leaves"),
    ]
    out.fields([*((slash.usage, slash.about) for slash in COMMANDS.values()), *keys])


def _bye(_conversation: Conversation, _out: Output, _argument: str) -> None:
    raise Bye


def _clear(conversation: Conversation, out: Output, _argument: str) -> None:
    conversation.clear()
    out.note("the conversation starts anew")


def _system(conversation: Conversation, out: Output, argument: str) -> None:
    if argument:
        conversation.system = argument.strip('"')
        out.note("the system prompt is set")
    else:
        out.result(conversation.system or "the model's own system prompt is in force")


def _set(conversation: Conversation, out: Output, argument: str) -> None:
    key, _, value = argument.partition(" ")
    if not argument:
        out.fields(list(describe(conversation.options).items()))
        return
    name, value = option_name(key), value.strip()
    if value == DEFAULT:
        conversation.unset(name)
    elif value:
        conversation.set(parse_option(name, value))
    out.fields([(name, describe(conversation.options)[name])])


def _show(conversation: Conversation, out: Output, _argument: str) -> None:
    out.fields(
        [
            ("model", conversation.model),
            ("system", conversation.system or "model's own"),
            ("turns", str(len(conversation.turns) // 2)),
            *describe(conversation.options).items(),
        ]
    )


COMMANDS = {
    "help": Slash("/help, /?", "this list", _help),
    "system": Slash("/system [TEXT]", "shows or sets the system prompt", _system),
    "set": Slash("/set [NAME [VALUE]]", f"shows or sets an option; {DEFAULT} leaves it to the model", _set),
    "show": Slash("/show", "the model, the system prompt and the options in force", _show),
    "clear": Slash("/clear", "forgets the conversation", _clear),
    "bye": Slash("/bye, /exit", "leaves", _bye),
}
