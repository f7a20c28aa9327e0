"""`/v1/messages`: events in, the whole message or its stream out. Pure.

https://platform.claude.com/docs/en/build-with-claude/streaming
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from llmrun.api import sse
from llmrun.api.anthropic.bodies import MessagesBody
from llmrun.api.anthropic.content import Block, Blocks
from llmrun.api.gathered import limited
from llmrun.api.oneline import Json
from llmrun.types import Event, Finished, Started, Stopped, Usage


@dataclass(frozen=True)
class Head:
    """The reply's own name."""

    id: str
    model: str

    def message(self, content: list[Json], end: Json, usage: Json) -> Json:
        return {
            "id": self.id,
            "type": "message",
            "role": "assistant",
            "model": self.model,
            "content": content,
            **end,
            "usage": usage,
        }


NOT_ENDED: Json = {"stop_reason": None, "stop_sequence": None}


def usage_of(usage: Usage) -> Json:
    """The three counts of the input add up to the prompt. What is kept for later prompts costs nothing, so
    nothing of it is told apart."""
    return {
        "input_tokens": usage.prompt - usage.cached,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": usage.cached,
        "output_tokens": usage.completion,
        "output_tokens_details": {"thinking_tokens": usage.reasoning},
        "service_tier": "standard",
        **({"truncated_input_tokens": usage.truncated} if usage.truncated else {}),
    }


def end_of(body: MessagesBody, stopped: Stopped) -> Json:
    """Why the answer ended. A stop string of the model's own ends its turn, as its end token does. Of the
    limits only a full context has a word of its own."""
    sequence = stopped.stop_sequence if stopped.stop_sequence in (body.stop_sequences or ()) else None
    reason = "stop_sequence" if sequence is not None else "end_turn"
    if stopped.reason == "tool_calls":
        reason = "tool_use"
    elif stopped.reason == "length":
        reason = "model_context_window_exceeded" if stopped.limit == "context" else "max_tokens"
    return {"stop_reason": reason, "stop_sequence": sequence}


class Answer:
    """What is known of the answer so far, and after its last event all that a reply ends with."""

    def __init__(self, body: MessagesBody) -> None:
        self._body = body
        self._stopped: Stopped | None = None
        self._finished: Finished | None = None
        self.blocks = Blocks()

    def take(self, event: Event) -> tuple[Block, str] | None:
        """As `Blocks.grow`."""
        if isinstance(event, Stopped):
            self._stopped = event
        elif isinstance(event, Finished):
            self._finished = event
        return self.blocks.grow(event)

    def ending(self) -> tuple[Json, Json, Json]:
        """The reason, the usage, and what only some replies have: the timings and the limit that cut the
        answer, which are ours, and for those who asked to have the conversation made shorter, that nothing of
        it was left out."""
        assert self._stopped is not None
        assert self._finished is not None
        usage = self._finished.usage
        more: Json = {
            **limited(self._stopped.limit),
            "timings": msgspec.to_builtins(self._finished.timings),
        }
        if self._body.context_management is not None:
            more["context_management"] = {"applied_edits": []}
        return end_of(self._body, self._stopped), usage_of(usage), more


class MessageReply:
    """The whole message, folded from its events."""

    def __init__(self, head: Head, body: MessagesBody) -> None:
        self._head = head
        self._shows_thinking = body.shows_thinking
        self._answer = Answer(body)

    def add(self, _request: int, event: Event) -> None:
        self._answer.take(event)

    def body(self) -> Json:
        end, usage, more = self._answer.ending()
        content = [block.whole(self._shows_thinking) for block in self._answer.blocks.all]
        return {**self._head.message(content, end, usage), **more}


class MessageStream:
    """The same as events. Each call returns the bytes to send, often none."""

    def __init__(self, head: Head, body: MessagesBody) -> None:
        self._head = head
        self._shows_thinking = body.shows_thinking
        self._answer = Answer(body)
        self._open: Block | None = None
        self._began = False

    def event(self, _request: int, event: Event) -> bytes:
        if isinstance(event, Started):
            return self._start(event)
        if (grown := self._answer.take(event)) is None:
            return b""
        block, text = grown
        begun = b"" if block is self._open else self._close() + self._begin(block)
        if block.kind == "thinking" and not self._shows_thinking:
            return begun
        return begun + _grown(block, block.delta(text))

    def end(self) -> bytes:
        end, usage, more = self._answer.ending()
        last = {"type": "message_delta", "delta": end, "usage": usage, **more}
        return self._close() + _named(last) + _named({"type": "message_stop"})

    def ping(self) -> bytes:
        """Keeps a quiet connection alive. No client expects an event in front of `message_start`."""
        return _named({"type": "ping"}) if self._began else sse.PING

    def _start(self, event: Started) -> bytes:
        """How much of the prompt came from the cache is known at the end: `message_delta` says it."""
        self._began = True
        usage = usage_of(Usage(prompt=event.prompt_tokens, completion=0))
        message = self._head.message([], NOT_ENDED, usage)
        return _named({"type": "message_start", "message": message}) + self.ping()

    def _begin(self, block: Block) -> bytes:
        self._open = block
        return _named({"type": "content_block_start", "index": block.index, "content_block": block.empty()})

    def _close(self) -> bytes:
        """The end of the block that is open, if one is."""
        block, self._open = self._open, None
        if block is None:
            return b""
        signed = b""
        if block.kind == "thinking":
            signed = _grown(block, {"type": "signature_delta", "signature": block.signature()})
        return signed + _named({"type": "content_block_stop", "index": block.index})


def _grown(block: Block, delta: Json) -> bytes:
    return _named({"type": "content_block_delta", "index": block.index, "delta": delta})


def _named(value: Json) -> bytes:
    """An event of the name that is its type."""
    return sse.event(value, str(value["type"]))
