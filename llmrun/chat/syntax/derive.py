"""A chat template's syntax, read off what it renders. Templates are foreign code; this takes bounded time.

A turn is rendered with and without content, reasoning and calls. What differs are the parts themselves; what
stands between them are the markers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from llmrun.chat.syntax import families
from llmrun.chat.syntax.atoms import common_end, common_start, first_tag
from llmrun.chat.syntax.derive_calls import Turn, derive_calls
from llmrun.chat.syntax.form import Block, Syntax
from llmrun.chat.syntax.probe import CONTENT, THOUGHT, Probe
from llmrun.chat.template import ChatTemplate

_SWITCHES: tuple[Mapping[str, Any], ...] = (
    {},
    {"enable_thinking": True},
    {"thinking": True},
    {"thinking_mode": "thinking"},
    {"thinking_mode": "enabled"},
    {"reasoning_effort": "high"},
)
_SPELT_OUT = re.compile(r"""['"]type['"]:""")  # a list of content's parts, printed as it is
_LAST_TAG = re.compile(r"(?:<[^<>]*>\w+)?<[^<>]*>\s*$")
_CLOSING = re.compile(r"</((?:\w+:)?think\w*)>|\[/(THINK)\]")


def derive(template: ChatTemplate, tokens: Mapping[str, str] | None = None) -> Syntax:
    """The syntax of `template`. `tokens`: its `bos_token`, `eos_token` and the like, as text.

    What the template does not render has no markers: `calls` is None where it knows no tool calls.
    """
    probe = Probe(template, tokens or {})
    turn = _turn(probe)
    if turn is None:
        return families.known(template, Syntax())
    syntax = _blocks(turn)
    syntax = derive_calls(turn, syntax)
    return families.known(template, syntax)


def _turn(probe: Probe) -> Turn | None:
    """What a plain answer looks like, with tools where the template renders with any."""
    for tools in (True, False):
        using = probe.using(tools=tools)
        prompt, plain = using.prompt(), using.answer(content=CONTENT)
        if prompt is not None and plain is not None and plain.count(CONTENT) == 1:
            return Turn(using, prompt, plain)
    return None


def _blocks(turn: Turn) -> Syntax:
    """Reasoning, what stands around content, and the end; calls not yet looked at."""
    before, _, after = turn.plain.partition(CONTENT)
    header = common_start(turn.prompt, before)
    opened = before[len(header) :]
    end = first_tag(after)
    thinking = next(_thoughts(turn.probe), None)
    if thinking is None:
        reasoning = _written(turn)
        return Syntax(reasoning, Block(_content_open(opened, reasoning)), end=end)
    prompt, text = thinking
    head, _, rest = text.partition(THOUGHT)
    header = common_start(prompt, head)
    between = rest.partition(CONTENT)[0]
    open_ = head[len(header) :] if head[len(header) :].strip() else _prompted(prompt, before, between)
    content = common_end(between, opened)
    if not content.strip() or not between.removesuffix(content).strip():
        content = ""
    return Syntax(Block(open_, between.removesuffix(content)), Block(content), end=end)


def _prompted(prompt: str, before: str, between: str) -> str:
    """What opens reasoning where the generation prompt does that: what closes it without its slash, or what
    the prompt has and a plain answer has not, or the prompt's last tag."""
    tag = first_tag(between).strip().replace("</", "<").replace("[/", "[")
    if tag and tag in prompt:
        return prompt[prompt.rindex(tag) :]
    last = _LAST_TAG.search(prompt)
    return prompt[len(common_start(prompt, before)) :] or (last[0] if last else "")


def _thoughts(probe: Probe) -> Iterator[tuple[str, str]]:
    """Renderings that show a thought in front of content, with their generation prompts."""
    for switches in _SWITCHES:
        using = probe.using(switches=switches)
        prompt = using.prompt()
        shapes: tuple[dict[str, Any], ...] = (
            {"content": CONTENT, "thought": THOUGHT},
            {"content": [{"type": "thinking", "thinking": THOUGHT}, {"type": "text", "text": CONTENT}]},
            {
                "content": {
                    "blocks": [{"type": "thoughts", "text": THOUGHT}, {"type": "response", "text": CONTENT}]
                }
            },
        )
        for shape in shapes:
            text = using.answer(**shape)
            if prompt is None or text is None or _SPELT_OUT.search(text):
                continue
            if re.search(f"{THOUGHT}.+{CONTENT}", text, re.DOTALL):
                yield prompt, text


def _written(turn: Turn) -> Block | None:
    """The reasoning markers that a template names without rendering any reasoning."""
    for literal in (turn.prompt, *turn.probe.template.literals):
        if match := _CLOSING.search(literal):
            close = match[0]
            return Block(close.replace("/", "", 1), close)
    return None


def _content_open(opened: str, reasoning: Block | None) -> str:
    if reasoning and reasoning.close in opened:
        return opened.partition(reasoning.close)[2].strip() and opened.partition(reasoning.close)[2]
    return opened if opened.strip() else ""
