"""The markers of reasoning, read off what a template renders with and without a thought."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from llmrun.chat.syntax.atoms import common_end, common_start, first_tag
from llmrun.chat.syntax.form import Block
from llmrun.chat.syntax.probe import CONTENT, THOUGHT, Probe, Turn

SWITCHES: tuple[Mapping[str, Any], ...] = (
    {},
    {"enable_thinking": True},
    {"thinking": True},
    {"thinking_mode": "thinking"},
    {"thinking_mode": "enabled"},
    {"reasoning_effort": "high"},
)
"""Variables that some templates want before they show reasoning."""

_SPELT_OUT = re.compile(r"""['"]type['"]:""")  # a list of content's parts, printed as it is
_LAST_TAG = re.compile(r"(?:<[^<>]*>\w+)?<[^<>]*>\s*$")
_CLOSING = re.compile(r"</((?:\w+:)?think\w*)>|\[/(THINK)\]")
_OPENING = {"</": "<", "[/": "[", "<|close|>": "<|open|>"}


def around_thought(turn: Turn) -> tuple[Block, str] | None:
    """The markers around a thought in front of content, and what opens content behind it. None where no
    thought shows there."""
    before = turn.plain.partition(CONTENT)[0]
    opened = before[len(common_start(turn.prompt, before)) :]
    for prompt, text in _thoughts(turn.probe):
        between = text.partition(THOUGHT)[2].partition(CONTENT)[0]
        content = common_end(between, opened)
        if not content.strip() or not between.removesuffix(content).strip():
            content = ""
        if opened.isspace() and not between.endswith(opened):
            content = opened
        close = between.removesuffix(content)
        return Block(opening(turn, prompt, text.partition(THOUGHT)[0], close), close), content
    return None


def opening(turn: Turn, prompt: str, before: str, close: str) -> str:
    """What opens reasoning, from the text `before` a thought. Where the generation prompt holds it too: what
    closes reasoning without its slash, or what the prompt has and a plain answer has not."""
    own = before[len(common_start(prompt, before)) :]
    if own.strip():
        return own
    tag = first_tag(close).strip()
    for slash, none in _OPENING.items():
        tag = tag.replace(slash, none, 1)
    if tag in prompt and tag != close.strip():
        behind = prompt[prompt.rindex(tag) + len(tag) :]
        return tag + behind[: len(behind) - len(behind.lstrip())]
    extra = prompt[len(common_start(prompt, turn.plain.partition(CONTENT)[0])) :]
    last = _LAST_TAG.search(prompt)
    return extra.removesuffix(close.strip()) or (last[0] if last else "")


def named(turn: Turn) -> Block | None:
    """The reasoning markers that a template names without rendering any reasoning."""
    for literal in (turn.prompt, *turn.probe.template.literals):
        if match := _CLOSING.search(literal):
            return Block(match[0].replace("/", "", 1), match[0])
    return None


def _thoughts(probe: Probe) -> Iterator[tuple[str, str]]:
    """Renderings that show a thought in front of content, behind their generation prompts."""
    thought = {"type": "thinking", "thinking": THOUGHT}
    blocks = [{"type": "thoughts", "text": THOUGHT}, {"type": "response", "text": CONTENT}]
    shapes: tuple[dict[str, Any], ...] = (
        {"content": CONTENT, "thought": THOUGHT},
        {"content": [thought, {"type": "text", "text": CONTENT}]},
        {"content": {"blocks": blocks}},
    )
    for switches in SWITCHES:
        using = probe.using(switches=switches)
        prompt = using.prompt()
        for text in (using.answer(**shape) for shape in shapes):
            if prompt is None or text is None or _SPELT_OUT.search(text):
                continue
            if re.search(f"{THOUGHT}.+{CONTENT}", text, re.DOTALL):
                yield prompt, text
