"""Assistant's turns to render with a template, as the model would have written them, and to parse again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from llmrun.chat.syntax import Syntax, primed_by
from llmrun.chat.syntax.atoms import common_start
from llmrun.chat.template import ChatTemplate, variables
from llmrun.errors import LlmrunError
from llmrun.types import Tool
from tests.chat.syntax.parsing import Parsed, parsed

QUESTION = "What now?!"
SWITCHES: tuple[dict[str, Any], ...] = ({}, {"enable_thinking": True}, {"thinking_mode": "enabled"})
Arguments = Mapping[str, Any]


@dataclass(frozen=True)
class Turn:
    content: str = ""
    reasoning: str = ""
    calls: Sequence[tuple[str, Arguments]] = field(default_factory=tuple)

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What is called, with schemas that fit the arguments."""
        return tuple(Tool(name=name, parameters=schema_of(arguments)) for name, arguments in self.calls)


def schema_of(value: Any) -> dict[str, Any]:
    """A schema that `value` fits, as narrow as its type."""
    if isinstance(value, Mapping):
        properties = {key: {"description": "D.", **schema_of(item)} for key, item in value.items()}
        return {"type": "object", "properties": properties, "required": list(properties)}
    if isinstance(value, list):
        return {"type": "array", "items": schema_of(value[0]) if value else {}}
    if isinstance(value, bool):
        return {"type": "boolean"}
    kinds = {str: "string", int: "integer", float: "number"}
    return {"type": kinds.get(type(value), "null")}


def written(template: ChatTemplate, syntax: Syntax, turn: Turn) -> tuple[str, str] | None:
    """What the model wrote where the template renders `turn`, and what of it the prompt holds. None where the
    template refuses such a turn."""
    prompt = text = None
    for switches in SWITCHES:
        prompt = rendered(template, syntax, None, turn.tools, switches)
        text = rendered(template, syntax, turn, turn.tools, switches)
        if prompt is None or text is None:
            return None
        if not turn.reasoning or turn.reasoning in text:
            break
    assert prompt is not None
    assert text is not None
    header = common_start(prompt, text)
    text = text[len(header) :]
    block = syntax.reasoning
    if block and turn.reasoning and text.lstrip().startswith(turn.reasoning):  # the prompt alone opens it
        return text, _opened(syntax, header) or _opened(syntax, prompt)
    return text, primed_by(syntax, QUESTION + header)


def _opened(syntax: Syntax, prompt: str) -> str:
    primed = primed_by(syntax, QUESTION + prompt)
    return primed if syntax.reasoning and primed.startswith(syntax.reasoning.open.strip()) else ""


def rendered(
    template: ChatTemplate,
    syntax: Syntax,
    turn: Turn | None,
    tools: Sequence[Tool],
    switches: Mapping[str, Any],
) -> str | None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": QUESTION}]
    if turn:
        messages.append(_message(syntax, turn))
    declared = [
        {
            "type": "function",
            "function": {"name": tool.name, "description": "D.", "parameters": tool.parameters},
        }
        for tool in tools
    ]
    given = variables(
        messages,
        tools=declared or None,
        add_generation_prompt=turn is None,
        functions=json.dumps(declared),
        datetime="2025-01-01",
        **switches,
    )
    try:
        text = template.render({**given, "bos_token": "", "eos_token": "<|eos|>"})
    except LlmrunError:
        return None
    return text[text.rindex(QUESTION) + len(QUESTION) :]


def _message(syntax: Syntax, turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.content}
    if turn.reasoning:
        message |= {"reasoning_content": turn.reasoning, "reasoning": turn.reasoning}
    as_text = syntax.calls is not None and syntax.calls.arguments_text
    if turn.calls:
        message["tool_calls"] = [
            {
                "id": f"call{index:05d}",
                "type": "function",
                "function": {
                    "name": name,
                    "arguments": json.dumps(arguments) if as_text else dict(arguments),
                },
            }
            for index, (name, arguments) in enumerate(turn.calls)
        ]
    return message


def differences(template: ChatTemplate, syntax: Syntax, turn: Turn) -> str:
    """How the parsed message differs from the one rendered; "" where it does not, or cannot be rendered. What
    the template leaves out of the text is not expected back."""
    if turn.calls and syntax.calls is None:
        return ""
    found = written(template, syntax, turn)
    if found is None:
        return ""
    text, primed = found
    if (turn.calls and not _shows(template, syntax, turn, "calls")) or _left_open(syntax, text, primed):
        return ""
    got = parsed(text, syntax, turn.tools, primed=primed)
    wanted = Parsed(
        content=turn.content if _shows(template, syntax, turn, "content") else "",
        reasoning=turn.reasoning if _shows(template, syntax, turn, "reasoning") else "",
    )
    said_before = turn.content if turn.calls and not turn.reasoning else ""
    if said_before and syntax.reasoning and syntax.reasoning.open + said_before in text:
        wanted = Parsed(reasoning=turn.content)  # some templates put what is said before a call there
    if not syntax.end:
        got.content = got.content.rstrip("\n")  # white space alone ends the turn
    told = [
        f"{what}: {have!r}, not {want!r}"
        for what, have, want in (
            ("content", got.content, wanted.content),
            ("reasoning", got.reasoning, wanted.reasoning),
            ("calls", [(call.name, call.text) for call in got.calls], [(n, dict(a)) for n, a in turn.calls]),
        )
        if (have != want if what != "calls" else _calls_differ(got, turn))
    ]
    return "\n".join([*told, f"in {text!r} behind {primed!r}"]) if told else ""


def _left_open(syntax: Syntax, text: str, primed: str) -> bool:
    """Whether the template writes a turn without reasoning behind what opens it."""
    block = syntax.reasoning
    return bool(block and primed.startswith(block.open.strip() or "\0") and block.close.strip() not in text)


def _shows(template: ChatTemplate, syntax: Syntax, turn: Turn, part: str) -> bool:
    """Whether the template writes this part of the turn."""
    less = {
        "content": replace(turn, content=""),
        "reasoning": replace(turn, reasoning=""),
        "calls": replace(turn, calls=()),
    }[part]
    found, without = written(template, syntax, turn), written(template, syntax, less)
    if found is None or without is None:  # some refuse a turn without content
        return found is not None
    return _first(syntax, found[0]) != _first(syntax, without[0])


def _first(syntax: Syntax, text: str) -> str:
    """The text of the first turn: a few templates put content and calls into two."""
    end = syntax.end.strip()
    thought, close, rest = text.rpartition(syntax.reasoning.close) if syntax.reasoning else ("", "", text)
    return thought + close + (rest.partition(end)[0] if end else rest)


def _calls_differ(got: Parsed, turn: Turn) -> bool:
    try:
        found = [(call.name, call.arguments, call.complete) for call in got.calls]
    except ValueError:
        return True
    return found != [(name, dict(arguments), True) for name, arguments in turn.calls]
