"""A conversation to a prompt's text by one chat template, with tools, reasoning and an unfinished last turn.

Every text of the request is marked, so that none of it can become a control token. What the template would
leave out in silence goes in as plain text (`llmrun.chat.fallback`); what it refuses is an error in its words.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from llmrun import log
from llmrun.chat import conversation, unfinished
from llmrun.chat.bounds import bounded
from llmrun.chat.control import ControlTokens
from llmrun.chat.conversation import Naming, message_variables, tool_variables
from llmrun.chat.fallback import without_tools
from llmrun.chat.mark import Mark
from llmrun.chat.syntax import FALLBACK, Syntax, primed_by
from llmrun.chat.syntax.derive import derive
from llmrun.chat.template import ChatTemplate, variables
from llmrun.chat.thinking import Switches, Way, as_switched, find_switches, way_of
from llmrun.chat.tool_checks import check_tools
from llmrun.chat.turn import Turn
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.types import GenerateRequest, Message, Thinking, Tool

_OURS = frozenset({"messages", "bos_token", "eos_token"})
_SIGNS = ("think", "thought", "reason", "tool", "function", "<|channel")
_PROBE = "qzxprobe"  # a word that no template holds


class Renderer:
    """Renders conversations by one template. Used by one thread at a time.

    edges  the spellings of the model's first and last token, by the names that templates know
    """

    def __init__(self, template: ChatTemplate, control: ControlTokens, edges: Mapping[str, str]) -> None:
        self._template = template
        self._control = control
        self._edges = edges

    @functools.cached_property
    def syntax(self) -> Syntax:
        """What this template's answers look like. Where nothing hints at more than text, nothing is rendered
        to find out."""
        written = "\0".join((*self._template.literals, *self._template.inputs)).lower()
        if not any(sign in written for sign in _SIGNS):
            return Syntax()
        try:
            with bounded():
                return derive(self._template, self._edges)
        except Exception:  # foreign code was led astray: the model still chats, as one without tools
            log.ROOT.exception("it cannot be found out how this chat template writes calls and reasoning")
            return Syntax()

    @functools.cached_property
    def _switches(self) -> Switches:
        with bounded():
            return find_switches(self._template)

    def render(self, request: GenerateRequest) -> Turn:
        """LlmrunError TEMPLATE or INVALID_REQUEST (with the field) where there is no prompt."""
        messages = conversation.with_results(request.messages or ())
        _check(request, messages)
        check_tools(request)
        thinking = request.thinking or Thinking()
        way = Way({})
        if thinking.enabled is not None or thinking.effort is not None:
            thinking = as_switched(thinking, self._switches)
            way = way_of(thinking, self._switches, thinks=self.syntax.reasoning is not None)
        if way.word:
            messages = _told(messages, way.word)
        given = {**self._budget(request.thinking), **way.variables, **request.template_kwargs}
        syntax = self.syntax
        if request.tools or any(message.tool_calls or message.role == "tool" for message in messages):
            turn = self._with_tools(request, messages, given)
        else:
            turn = self._turn(request, messages, given, (), _callless(syntax))
        return self._silenced(turn, thinking)

    # --- tools

    def _with_tools(
        self, request: GenerateRequest, messages: list[Message], given: Mapping[str, Any]
    ) -> Turn:
        syntax, tools = self.syntax, request.tools
        if syntax.calls is not None and (not tools or self._shows_tools):
            turn = self._turn(request, messages, given, tools, syntax)
            if self._holds_all(turn, request, messages, given):
                return turn
        plain = without_tools(messages, tools, system=self._has_system_turn)
        form = dataclasses.replace(
            syntax,
            calls=FALLBACK.calls,
            after_content=FALLBACK.after_content,
            left_out=FALLBACK.left_out,
        )
        return self._turn(request, plain, given, (), form)

    def _holds_all(
        self, turn: Turn, request: GenerateRequest, messages: list[Message], given: Mapping[str, Any]
    ) -> bool:
        """Whether every call and every result is in the prompt: each is put in a word of its own, and all of
        those are looked for."""
        words, others = conversation.in_other_words(messages, unfinished.free_word(messages))
        try:
            other = self._turn(request, others, given, request.tools, turn.syntax)
        except LlmrunError:
            return True  # it looks at what they say, so it cannot but know them
        text = other.mark.clean(other.text)
        return all(word in text for word in words)

    @functools.cached_property
    def _shows_tools(self) -> bool:
        tools = tool_variables([Tool(name=_PROBE, description="Look it up.")])
        return _PROBE in (self._probed([{"role": "user", "content": "Hi"}], tools=tools) or "")

    @functools.cached_property
    def _has_system_turn(self) -> bool:
        turns = [{"role": "system", "content": _PROBE}, {"role": "user", "content": "Hi"}]
        return _PROBE in (self._probed(turns) or "")

    def _probed(self, turns: list[dict[str, Any]], **given: Any) -> str | None:
        try:
            with bounded():
                return self._template.render({**variables(turns, **given), **self._edges})
        except LlmrunError:
            return None

    # --- one rendering

    def _turn(
        self,
        request: GenerateRequest,
        messages: Sequence[Message],
        given: Mapping[str, Any],
        tools: Sequence[Tool],
        syntax: Syntax,
    ) -> Turn:
        probe, prefill = "", ""
        if request.continues:
            given = {**given, "add_generation_prompt": False}
            probe = unfinished.free_word(messages)
            messages, prefill = unfinished.with_probe(messages, probe)
        text, mark = self._rendered(messages, given, tools, syntax)
        text = unfinished.cut(text, probe) if probe else text
        reasoning = request.continues and not messages[-1].content and bool(messages[-1].reasoning)
        primed = "" if request.continues else primed_by(syntax, text)
        if reasoning and syntax.reasoning:
            primed = syntax.reasoning.open
        block, held = syntax.reasoning, primed.strip()
        begun = bool(block and held and held == block.open.strip())
        over = bool(block and held and held == block.close.strip())
        thinks = block is not None and not over and (begun or not request.continues)
        return Turn(text, mark, syntax, primed, thinks, prefill)

    def _rendered(
        self,
        messages: Sequence[Message],
        given: Mapping[str, Any],
        tools: Sequence[Tool],
        syntax: Syntax,
    ) -> tuple[str, Mark]:
        """The text by the first way to name the calls that the template takes; else its refusal."""
        refusal: LlmrunError | None = None
        for naming in _namings(messages, syntax):
            turns = message_variables(
                messages, naming, arguments_text=bool(syntax.calls and syntax.calls.arguments_text)
            )
            try:
                return self._text(turns, given, tools)
            except LlmrunError as error:
                refusal = refusal or error
        assert refusal is not None
        raise refusal

    def _text(
        self, turns: list[dict[str, Any]], given: Mapping[str, Any], tools: Sequence[Tool]
    ) -> tuple[str, Mark]:
        shown = tool_variables(tools) or None
        outside = {**variables(turns, tools=shown), **given}
        mark = Mark(self._control, outside, self._template.names)
        marked = {name: mark.outside(value) for name, value in outside.items()}
        with bounded():
            return self._template.render({**marked, **self._edges}, mark), mark

    # --- thinking

    def _budget(self, thinking: Thinking | None) -> Mapping[str, Any]:
        """The budget for templates that tell their model of it."""
        if thinking is None or thinking.budget is None or "thinking_budget" not in self._template.inputs:
            return {}
        return {"thinking_budget": thinking.budget}

    def _silenced(self, turn: Turn, thinking: Thinking) -> Turn:
        """`turn`, its reasoning closed in the prompt where it is off and the template does not close it."""
        block = turn.syntax.reasoning
        if thinking.enabled is not False or block is None or not turn.thinks:
            return turn
        if self._switches.off is not None and not turn.primed:
            return dataclasses.replace(turn, thinks=False)
        rest = block.close if turn.primed else block.open + block.close
        return dataclasses.replace(turn, text=turn.text + rest, primed="", thinks=False)


def _callless(syntax: Syntax) -> Syntax:
    return dataclasses.replace(syntax, calls=None)


def _check(request: GenerateRequest, messages: Sequence[Message]) -> None:
    if not messages:
        raise LlmrunError(
            INVALID_REQUEST, "there are no messages", hint="send at least one", field="messages"
        )
    if taken := _OURS.intersection(request.template_kwargs):
        name = min(taken)
        raise LlmrunError(
            INVALID_REQUEST,
            f"the template variable {name!r} cannot be set from outside",
            hint="leave it out",
            field=f"chat_template_kwargs.{name}",
        )
    last = messages[-1]
    if request.continues and (last.role != "assistant" or last.tool_calls):
        what = "calls tools" if last.tool_calls else f"is the {last.role}'s"
        raise LlmrunError(
            INVALID_REQUEST,
            f"the last message cannot be continued: it {what}",
            hint="end with an assistant message of text",
            field=f"messages.{len(messages) - 1}",
        )


def _told(messages: list[Message], word: str) -> list[Message]:
    """`messages` with `word` in the system's turn."""
    if messages[0].role == "system":
        told = msgspec.structs.replace(messages[0], content=f"{messages[0].content} {word}".lstrip())
        return [told, *messages[1:]]
    return [Message(role="system", content=word), *messages]


def _namings(messages: Sequence[Message], syntax: Syntax) -> list[Naming]:
    if syntax.calls is not None and syntax.calls.named_ids:
        return [conversation.named_id]
    if any(message.tool_calls or message.tool_call_id for message in messages):
        return [conversation.given_id, conversation.short_id]
    return [conversation.given_id]
