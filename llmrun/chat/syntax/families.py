"""Syntaxes that a template does not show by rendering, told by what it says."""

from __future__ import annotations

from dataclasses import replace

from llmrun.chat.syntax.form import FALLBACK, Block, Calls, PythonArguments, Slot, Syntax
from llmrun.chat.template import ChatTemplate

_LFM2 = Calls(
    open="<|tool_call_start|>[",
    call=(Slot.NAME, "(", Slot.ARGUMENTS, ")"),
    separator=", ",
    close="]<|tool_call_end|>",
    arguments=PythonArguments(),
)
_GRANITE3 = Calls(
    open="<|tool_call|>[",
    call=('{"name": "', Slot.NAME, '", "arguments": ', Slot.ARGUMENTS, "}"),
    separator=", ",
    close="]",
)


def known(template: ChatTemplate, derived: Syntax) -> Syntax:
    """`derived`, completed from what the template's words tell."""
    said = "\n".join(template.literals)
    if "<|channel|>" in said and "<|message|>" in said and "<|start|>" in said:
        return harmony(derived)
    if derived.calls is None:
        for word, calls in (
            ("<|tool_list_start|>", _LFM2),
            ("List of tools: [", _LFM2),
            ("<|tool_call|>", _GRANITE3),
            ("<tool_call>", FALLBACK.calls),
        ):
            if word in said:
                return replace(derived, calls=calls)
    elif not derived.calls.marker and "<|python_tag|>" in said:
        return replace(derived, calls=replace(derived.calls, also=("<|python_tag|>",)))
    return derived


def harmony(derived: Syntax) -> Syntax:
    """OpenAI's harmony format: messages of several channels make one turn. A template shows one way to head a
    call, models write others, and leave out parts of the heads of their texts."""
    calls = Calls(
        call=(
            "<|channel|>commentary to=functions.",
            Slot.NAME,
            " <|constrain|>json<|message|>",
            Slot.ARGUMENTS,
            "<|call|>",
        ),
        several=False,
        also=(" to=functions.", "<|channel|>analysis to=functions.", "<|start|>assistant to=functions."),
        header_end="<|message|>",
    )
    return Syntax(
        reasoning=Block("<|channel|>analysis<|message|>", "<|end|><|start|>assistant"),
        content=Block("<|channel|>final<|message|>", "<|end|>"),
        also_content=(
            "<|channel|>commentary<|message|>",
            "<|channel|>commentary",
            "<|channel|>final",
            "<|start|>assistant",
            "<|message|>",
        ),
        calls=calls if derived.calls else None,
        after_content="<|end|><|start|>assistant",
        end="<|return|>",
    )
