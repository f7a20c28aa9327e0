"""A last turn that is not finished: where it ends in the prompt, whatever the template puts behind it.

It is rendered with a word behind its text that nothing else holds; there the prompt is cut.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from llmrun.errors import TEMPLATE, LlmrunError
from llmrun.types import Message


def free_word(messages: Sequence[Message]) -> str:
    """A word that none of the messages holds."""
    word = "qzxunfinished"
    while any(word in message.content or word in (message.reasoning or "") for message in messages):
        word += "q"
    return word


def with_probe(messages: Sequence[Message], probe: str) -> tuple[list[Message], str]:
    """`messages` with a probe where the last one breaks off, and its text up to there."""
    last = messages[-1]
    field = "content" if last.content or not last.reasoning else "reasoning"
    said: str = getattr(last, field) or ""
    return [*messages[:-1], msgspec.structs.replace(last, **{field: said + probe})], said


def cut(text: str, probe: str) -> str:
    """`text` up to the last probe."""
    before, found, _ = text.rpartition(probe)
    if not found:
        raise LlmrunError(TEMPLATE, "the chat template leaves out the message that shall be continued")
    return before
