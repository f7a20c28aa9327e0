"""A rendered conversation, and what the answer to it will look like."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from llmrun.chat.mark import Mark
from llmrun.chat.syntax import OutputParser, Syntax
from llmrun.chat.vocab import Vocab
from llmrun.types import GenerateRequest


@dataclass(frozen=True)
class Turn:
    """A rendered prompt, and what the answer to it will look like.

    text      the prompt, marked
    mark      how text from the request is marked in it
    syntax    what tells the parts of the answer apart
    primed    the answer's beginning, as far as the prompt holds it already
    thinks    whether the answer may begin with reasoning, or go on with it
    prefill   what an unfinished last turn says already
    """

    text: str
    mark: Mark
    syntax: Syntax
    primed: str = ""
    thinks: bool = False
    prefill: str = ""

    @property
    def plain(self) -> bool:
        """Whether the answer is content and nothing else."""
        return self.syntax.reasoning is None and self.syntax.calls is None and not self.syntax.content.open

    def parser(self, request: GenerateRequest) -> OutputParser:
        """Reads one answer to `request`. What may not be called is no call."""
        syntax = self.syntax
        if request.tool_choice.mode == "none":
            syntax = dataclasses.replace(syntax, calls=None)
        return OutputParser(syntax, request.tools, self.primed, inline=request.inline_reasoning)

    def shown(self, vocab: Vocab) -> dict[int, bytes]:
        """The control tokens that the parser looks for, and how they are spelt."""
        written = "\0".join(_texts(self.syntax))
        return {
            token: spelling.encode()
            for spelling, token in vocab.control_tokens().items()
            if spelling in written
        }


def _texts(value: Any) -> Iterator[str]:
    """Every text that a syntax holds."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, tuple):
        for item in value:
            yield from _texts(item)
    elif dataclasses.is_dataclass(value):
        for field in dataclasses.fields(value):
            yield from _texts(getattr(value, field.name))
