"""`/v1/chat/completions`, a pure pair: body in, request out; events in, reply or stream out."""

from __future__ import annotations

from llmrun.api.continuing import continuing
from llmrun.api.gathered import Gathered, OfAnswer, limited
from llmrun.api.oneline import Json
from llmrun.api.openai.bodies import ChatBody
from llmrun.api.openai.logprobs import chat_logprobs
from llmrun.api.openai.messages import conversation
from llmrun.api.openai.reply import ChunkStream, Head, Tally
from llmrun.api.openai.thinking import thinking
from llmrun.api.openai.tools import tools_of
from llmrun.api.toolbox import Choice, toolbox
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    Finished,
    GenerateRequest,
    Progress,
    Reasoning,
    Started,
    Stopped,
    Text,
)


def to_request(body: ChatBody, request_id: str) -> GenerateRequest:
    """The one request that the body asks for. LlmrunError where its messages or tools do not fit together."""
    messages = conversation(body.messages)
    choice = body.tool_choice.choice() if body.tool_choice else Choice()
    tools, tool_choice = toolbox(tools_of(body.tools), choice, body.parallel_tool_calls)
    request = GenerateRequest(
        id=request_id,
        model=body.model,
        messages=messages,
        options=body.options(),
        logit_bias=body.logit_bias or {},
        client=body.user or "",
        priority=body.priority or 0,
        overflow=body.context_overflow or "error",
        n=body.n or 1,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        template_kwargs=body.chat_template_kwargs or {},
        output_format=body.output_format(),
        tools=tools,
        tool_choice=tool_choice,
        thinking=thinking(
            body.reasoning_effort, body.thinking_budget_tokens, field="reasoning_effort", think=body.think
        ),
        inline_reasoning=body.inlines_reasoning,
        **body.wishes(),
    )
    return continuing(request, last=f"messages.{len(messages) - 1}")


class ChatReply:
    """The whole reply, folded from the events of its one request."""

    def __init__(self, head: Head, body: ChatBody) -> None:
        self._head = head.fields("chat.completion")
        self._answers = [Gathered() for _ in range(body.n or 1)]
        self._wants_logprobs = bool(body.logprobs)
        self._tally = Tally()

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Finished):
            self._tally.add(event)
        elif isinstance(event, OfAnswer):
            self._answers[event.index].add(event)

    def body(self) -> Json:
        choices = [self._choice(index, answer) for index, answer in enumerate(self._answers)]
        usage, timings = self._tally.usage(), self._tally.timings()
        return {**self._head, "choices": choices, "usage": usage, "timings": timings}

    def _choice(self, index: int, answer: Gathered) -> Json:
        logprobs = None
        if self._wants_logprobs:
            logprobs = {"content": chat_logprobs(answer.logprobs), "refusal": None}
        return {
            "index": index,
            "message": _assistant(answer),
            "logprobs": logprobs,
            "finish_reason": answer.reason,
            **limited(answer.limit),
        }


def _assistant(answer: Gathered) -> Json:
    """The message of a choice; what an answer does not have is absent, as OpenAI's clients expect it."""
    message: Json = {"role": "assistant", "content": answer.text, "refusal": None}
    if answer.reasoning:
        message["reasoning_content"] = answer.reasoning
    if answer.calls:
        message["content"] = answer.text or None
        message["tool_calls"] = [
            {"id": c.id, "type": "function", "function": {"name": c.name, "arguments": c.arguments}}
            for c in answer.calls
        ]
    return message


class ChatStream:
    """The same reply as chunks. Each call returns the bytes to send, often none."""

    def __init__(self, head: Head, body: ChatBody) -> None:
        self._chunks = ChunkStream(
            head.fields("chat.completion.chunk"), body.wants_usage, wants_timings=body.wants_timings
        )
        self._count = body.n or 1
        self._wants_logprobs = bool(body.logprobs)
        self._wants_progress = body.wants_progress
        # An answer of calls alone has no content, and what a client joins must come to that.
        self._content = None if body.tools else ""

    def event(self, request: int, event: Event) -> bytes:
        self._chunks.note(request, event)
        match event:
            case Text():
                return self._text(event)
            case Reasoning():
                return self._delta(event.index, {"reasoning_content": event.text}) if event.text else b""
            case CallStarted():
                function = {"name": event.name, "arguments": ""}
                return self._call(event, {"id": event.id, "type": "function", "function": function})
            case CallArguments():
                return self._call(event, {"function": {"arguments": event.text}}) if event.text else b""
            case Stopped():
                return self._chunks.hold(
                    {**_choice(event.index, {}, None, event.reason), **limited(event.limit)}
                )
            case Started():
                first: Json = {"role": "assistant", "content": self._content, "refusal": None}
                return b"".join(self._delta(index, first) for index in range(self._count))
            case Progress() if self._wants_progress:
                return self._chunks.progress(event)
            case Finished():
                self._chunks.finished(event)
        return b""

    def end(self) -> bytes:
        return self._chunks.end()

    def _text(self, event: Text) -> bytes:
        logprobs: Json | None = None
        if self._wants_logprobs and event.logprobs:
            logprobs = {"content": chat_logprobs(event.logprobs), "refusal": None}
        elif not event.text:
            return b""
        return self._delta(event.index, {"content": event.text}, logprobs)

    def _call(self, event: CallStarted | CallArguments, fields: Json) -> bytes:
        return self._delta(event.index, {"tool_calls": [{"index": event.call, **fields}]})

    def _delta(self, index: int, delta: Json, logprobs: Json | None = None) -> bytes:
        return self._chunks.chunk(_choice(index, delta, logprobs))


def _choice(index: int, delta: Json, logprobs: Json | None = None, reason: str | None = None) -> Json:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
