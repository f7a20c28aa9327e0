"""Commands that show and set how the model answers."""

from __future__ import annotations

from llmrun.cli.answering import Wrapped
from llmrun.cli.options import describe, option_name, parse_option
from llmrun.cli.repl.chatting import Chat
from llmrun.errors import USAGE, LlmrunError

DEFAULT = "default"
_THINK = {"on": True, "off": False, DEFAULT: None}
_THINK_WORDS = {value: word for word, value in _THINK.items()} | {None: "model's own"}


def system(chat: Chat, argument: str) -> None:
    if argument:
        chat.conversation.system = None if argument == DEFAULT else argument.strip('"')
        chat.out.note("the system prompt is set")
    else:
        chat.out.words(chat.conversation.system or "the model's own system prompt is in force")


def option(chat: Chat, argument: str) -> None:
    conversation = chat.conversation
    key, _, value = argument.partition(" ")
    if not argument:
        chat.out.fields(list(in_force(chat).items()))
        return
    name, value = option_name(key), value.strip()
    if value == DEFAULT:
        conversation.unset(name)
    elif value:
        conversation.set(parse_option(name, value))
    chat.out.fields([(name, in_force(chat)[name])])


def in_force(chat: Chat) -> dict[str, str]:
    """Every option and its value."""
    return describe(chat.conversation.options, chat.defaults(chat.conversation.model))


def think(chat: Chat, argument: str) -> None:
    if argument in _THINK:
        chat.conversation.think = _THINK[argument]
    elif argument in ("show", "hide"):
        chat.thoughts = argument == "show"
        if chat.thoughts and chat.answer and chat.answer.reasoning:
            writer = Wrapped(chat.out) if chat.out.styled else chat.out
            writer.thought(f"{chat.answer.reasoning.strip()}\n")
    elif argument:
        raise LlmrunError(
            USAGE, f"/think {argument!r} is not known", hint="say on, off, default, show or hide"
        )
    shown = "shown" if chat.thoughts else "hidden"
    chat.out.note(f"reasoning: {_THINK_WORDS[chat.conversation.think]}, {shown}")


def model(chat: Chat, argument: str) -> None:
    if argument:
        chat.obtain(argument)
        chat.conversation.model = argument
    chat.out.result(chat.conversation.model)


def show(chat: Chat, _argument: str) -> None:
    conversation = chat.conversation
    chat.out.fields(
        [
            ("model", conversation.model),
            ("session", chat.name or "not kept"),
            ("system", conversation.system or "model's own"),
            ("turns", str(len(conversation.turns) // 2)),
            ("reasoning", _THINK_WORDS[conversation.think]),
            *in_force(chat).items(),
        ]
    )
