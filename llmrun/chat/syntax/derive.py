"""A chat template's syntax, read off what it renders. Templates are foreign code; this takes bounded time.

A turn is rendered with and without content, reasoning and calls. What differs are the parts themselves; what
stands between them are the markers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from llmrun.chat.syntax import derive_reasoning, families
from llmrun.chat.syntax.atoms import common_start, first_tag
from llmrun.chat.syntax.derive_calls import derive_calls
from llmrun.chat.syntax.form import Block, Syntax
from llmrun.chat.syntax.markers import primed_by
from llmrun.chat.syntax.probe import CONTENT, Probe, Turn
from llmrun.chat.template import ChatTemplate


def derive(template: ChatTemplate, tokens: Mapping[str, str] | None = None) -> Syntax:
    """The syntax of `template`. `tokens`: its `bos_token`, `eos_token` and the like, as text.

    What the template does not render has no markers: `calls` is None where it knows no tool calls.
    """
    turn = _turn(Probe(template, tokens or {}))
    if turn is None:
        return families.known(template, Syntax())
    syntax = derive_calls(turn, _blocks(turn))
    if syntax.reasoning is None:
        syntax = replace(syntax, reasoning=derive_reasoning.named(turn))
    syntax = families.known(template, _prompted_content(turn, syntax))
    return replace(syntax, primed=primed_by(syntax, turn.prompt))


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
    end = first_tag(turn.plain.partition(CONTENT)[2])
    if found := derive_reasoning.around_thought(turn):
        reasoning, content = found
        return Syntax(reasoning, Block(content), end=end)
    before = turn.plain.partition(CONTENT)[0]
    opened = before[len(common_start(turn.prompt, before)) :]
    if (named := derive_reasoning.named(turn)) and named.close in opened:
        opened = opened.rpartition(named.close)[2]
    return Syntax(content=Block(opened), end=end)


def _prompted_content(turn: Turn, syntax: Syntax) -> Syntax:
    """Where the generation prompt already holds what opens a call, it holds what opens content too."""
    head = syntax.calls.head.strip() if syntax.calls else ""
    if head and syntax.content.open.strip() and turn.prompt.rstrip().endswith(head):
        return replace(syntax, content=replace(syntax.content, open=head + syntax.content.open))
    return syntax
