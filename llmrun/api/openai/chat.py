"""`/v1/chat/completions`, a pure pair: body in, request out; events in, reply or stream out."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.api.openai.bodies import ChatBody, ChatMessage
from llmrun.api.openai.logprobs import chat_logprobs
from llmrun.api.openai.reply import ChunkStream, Head, Tally
from llmrun.errors import UNSUPPORTED_FIELD, LlmrunError
from llmrun.types import Event, Finished, GenerateRequest, Message, Started, Stopped, Text, TokenLogprob


def _message(message: ChatMessage) -> Message:
    role = "system" if message.role == "developer" else message.role
    return Message(role=role, content=message.text(), name=message.name)


def to_request(body: ChatBody, request_id: str) -> GenerateRequest:
    """The one request that the body asks for; UNSUPPORTED_FIELD where it asks to continue a reply."""
    if body.messages[-1].role == "assistant":
        field = f"messages.{len(body.messages) - 1}.role"
        raise LlmrunError(
            UNSUPPORTED_FIELD,
            f"{field} asks to continue a reply of the assistant's, which is not supported yet",
            hint="end with a message of another role",
            field=field,
        )
    new, old = body.max_completion_tokens, body.max_tokens
    return GenerateRequest(
        id=request_id,
        model=body.model,
        messages=tuple(map(_message, body.messages)),
        options=body.options(old if new is None else new),
        logit_bias=body.logit_bias or {},
        n=body.n or 1,
        logprobs=(body.top_logprobs or 0) if body.logprobs else None,
        template_kwargs=body.chat_template_kwargs or {},
        output_format=body.output_format(),
    )


class ChatReply:
    """The whole reply, folded from the events of its one request."""

    def __init__(self, head: Head, body: ChatBody) -> None:
        self._head = head.fields("chat.completion")
        count = body.n or 1
        self._text: list[list[str]] = [[] for _ in range(count)]
        self._logprobs: list[list[TokenLogprob]] | None = (
            [[] for _ in range(count)] if body.logprobs else None
        )
        self._reasons = [""] * count
        self._tally = Tally()

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Text):
            self._text[event.index].append(event.text)
            if self._logprobs is not None:
                self._logprobs[event.index].extend(event.logprobs)
        elif isinstance(event, Stopped):
            self._reasons[event.index] = event.reason
        elif isinstance(event, Finished):
            self._tally.add(event)

    def body(self) -> Json:
        choices = [self._choice(index) for index in range(len(self._text))]
        usage, timings = self._tally.usage(), self._tally.timings()
        return {**self._head, "choices": choices, "usage": usage, "timings": timings}

    def _choice(self, index: int) -> Json:
        message = {"role": "assistant", "content": "".join(self._text[index]), "refusal": None}
        logprobs = self._logprobs and {"content": chat_logprobs(self._logprobs[index]), "refusal": None}
        return {
            "index": index,
            "message": message,
            "logprobs": logprobs,
            "finish_reason": self._reasons[index],
        }


class ChatStream:
    """The same reply as chunks. Each call returns the bytes to send, often none."""

    def __init__(self, head: Head, body: ChatBody) -> None:
        self._chunks = ChunkStream(head.fields("chat.completion.chunk"), body.wants_usage)
        self._count = body.n or 1
        self._wants_logprobs = bool(body.logprobs)

    def event(self, _request: int, event: Event) -> bytes:
        if isinstance(event, Text):
            return self._text(event)
        if isinstance(event, Stopped):
            return self._chunks.hold(_delta(event.index, {}, None, event.reason))
        if isinstance(event, Started):
            first: Json = {"role": "assistant", "content": "", "refusal": None}
            return b"".join(self._chunks.chunk(_delta(index, first)) for index in range(self._count))
        if isinstance(event, Finished):
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
        return self._chunks.chunk(_delta(event.index, {"content": event.text}, logprobs))


def _delta(index: int, delta: Json, logprobs: Json | None = None, reason: str | None = None) -> Json:
    return {"index": index, "delta": delta, "logprobs": logprobs, "finish_reason": reason}
