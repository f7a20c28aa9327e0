"""Small conversations that a template is asked to render, so that its markers show in the differences."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llmrun.chat.bounds import bounded
from llmrun.chat.template import ChatTemplate, variables
from llmrun.errors import LlmrunError

QUESTION = "QuestionZq"
CONTENT = "ContentZq"
THOUGHT = "ThoughtZq"
NAMES = ("toolZqOne", "toolZqTwo")
IDS = ("idZqOne01", "idZqTwo02")  # nine letters or digits: what the strictest templates want
MAX_SECONDS = 20.0  # of all probes of one template

KEYS = ("keyZqOne", "keyZqTwo")
_PLAIN = {
    "type": "object",
    "properties": {key: {"type": "string", "description": "Probe."} for key in KEYS},
    "required": list(KEYS),
}


@dataclass(frozen=True)
class Call:
    name: str
    arguments: Mapping[str, Any]
    id: str


@dataclass
class Probe:
    """Renders assistant's turns.

    template, tokens  the template and its special tokens
    tools             whether tools are given
    switches          variables that some templates want before they show reasoning
    arguments_text    whether arguments are given as JSON text
    """

    template: ChatTemplate
    tokens: Mapping[str, str]
    tools: bool = True
    switches: Mapping[str, Any] = field(default_factory=dict)
    arguments_text: bool = False
    deadline: float = 0.0

    def __post_init__(self) -> None:
        self.deadline = self.deadline or time.monotonic() + MAX_SECONDS

    def using(self, **changes: Any) -> Probe:
        return replace(self, **changes)

    def prompt(self) -> str | None:
        """What the generation prompt adds behind the question."""
        return self._render([], add_generation_prompt=True)

    def answer(self, *, content: Any = "", thought: str = "", calls: Sequence[Call] = ()) -> str | None:
        """The text behind the question, for a turn that holds these. None where the template refuses it."""
        message: dict[str, Any] = {"role": "assistant", "content": content}
        if thought:
            message |= {"reasoning_content": thought, "thinking": thought, "reasoning": thought}
        if calls:
            message["tool_calls"] = [self._call(call) for call in calls]
        return self._render([message], add_generation_prompt=False)

    def _call(self, call: Call) -> dict[str, Any]:
        arguments = json.dumps(call.arguments) if self.arguments_text else dict(call.arguments)
        function = {"name": call.name, "arguments": arguments}
        return {"id": call.id, "type": "function", "function": function}

    def _render(self, messages: list[dict[str, Any]], add_generation_prompt: bool) -> str | None:
        if time.monotonic() > self.deadline:
            return None
        given = variables(
            [{"role": "user", "content": QUESTION}, *messages],
            tools=_TOOLS if self.tools else None,
            add_generation_prompt=add_generation_prompt,
            functions=json.dumps(_TOOLS),  # how some older templates want tools
            datetime="2025-01-01",
            **self.switches,
        )
        try:
            with bounded():
                text = self.template.render({"bos_token": "", "eos_token": "", **given, **self.tokens})
        except LlmrunError:
            return None
        return text[text.rindex(QUESTION) + len(QUESTION) :] if QUESTION in text else None


_TOOLS = [
    {"type": "function", "function": {"name": name, "description": "Probe.", "parameters": _PLAIN}}
    for name in NAMES
]


@dataclass(frozen=True)
class Turn:
    """A probe that works, its generation prompt, and a plain answer's rendering."""

    probe: Probe
    prompt: str
    plain: str
