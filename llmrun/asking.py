"""How Python code asks: the words that `llmrun.load(...)` and `llmrun.Client()` share.

In: text or messages, and options by name. Out: our own types. Knows neither engine nor HTTP.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import Message, Options

T = TypeVar("T")
Conversation = str | Sequence[Message | Mapping[str, Any]]


def as_messages(conversation: Conversation) -> tuple[Message, ...]:
    """A text is one user's message; else messages as they are, or as `{"role": …, "content": …}`."""
    if isinstance(conversation, str):
        return (Message(role="user", content=conversation),)
    return tuple(_convert(message, Message, "messages") for message in conversation)


def as_options(options: Mapping[str, Any]) -> Options:
    """Options by name (those of `llmrun.types.Options`). INVALID_REQUEST names a wrong one."""
    known = Options.__struct_fields__
    for name in options:
        if name not in known:
            raise LlmrunError(
                INVALID_REQUEST,
                f"there is no option {name!r}",
                hint=f"there are {', '.join(known)}",
                field=name,
            )
    return _convert(dict(options), Options, "options")


def as_texts(texts: str | Sequence[str]) -> tuple[str, ...]:
    """One text, or several. INVALID_REQUEST where there are none."""
    if not texts:
        raise LlmrunError(INVALID_REQUEST, "there is no text", hint="give at least one", field="input")
    return (texts,) if isinstance(texts, str) else tuple(texts)


def _convert(value: Any, kind: type[T], field: str) -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise LlmrunError(INVALID_REQUEST, f"{field}: {error}", hint="mend the value", field=field) from None
