"""What `/v1/responses` answers, from events: one whole response, or the stream of typed events."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from llmrun.api import sse
from llmrun.api.gathered import Gathered, OfAnswer, limited
from llmrun.api.oneline import Json
from llmrun.api.openai.reply import Tally
from llmrun.api.openai.responses.bodies import ResponsesBody
from llmrun.api.openai.responses.output import Output
from llmrun.api.openai.responses.shown import begun
from llmrun.errors import LlmrunError
from llmrun.types import Event, Finished, Message, Started, ToolCall, Usage

Keep = Callable[[Json, Message], None]
"""Takes a response that ended well and the turn it made."""


class GrowingResponse:
    """One response, from its beginning to its end. Its events have no sequence numbers yet."""

    def __init__(self, response_id: str, created: int, body: ResponsesBody, keep: Keep) -> None:
        self._fields = begun(response_id, created, body)
        self._output = Output(response_id.removeprefix("resp_"), body.wants_logprobs)
        self._gathered = Gathered()
        self._tally = Tally()
        self._keep = keep

    def take(self, event: Event) -> Iterable[Json]:
        """The stream's events that follow from the next one; nothing follows from the last, see `ended`."""
        if isinstance(event, OfAnswer):
            self._gathered.add(event)
            return self._output.take(event)
        if isinstance(event, Finished):
            self._tally.add(event)
        elif isinstance(event, Started):
            return [
                {"type": f"response.{kind}", "response": self._fields} for kind in ("created", "in_progress")
            ]
        return ()

    def ended(self) -> Json:
        """The whole response, which is kept now where the body wanted that."""
        cut = self._gathered.reason == "length"
        why = {"reason": "max_output_tokens", **limited(self._gathered.limit)}
        response = {
            **self._fields,
            "status": "incomplete" if cut else "completed",
            "incomplete_details": why if cut else None,
            "output": self._output.items,
            "usage": _usage(self._tally.total()),
            "timings": self._tally.timings(),
        }
        if response["store"]:
            self._keep(response, _turn(self._gathered))
        return response

    def failed(self, error: LlmrunError) -> Json:
        """The response as far as it came, with the error that ended it."""
        told = {"code": "server_error", "message": str(error)}
        return {**self._fields, "status": "failed", "error": told, "output": self._output.items}


class ResponseReply:
    """The whole response, folded from the events of its one request."""

    def __init__(self, response: GrowingResponse) -> None:
        self._response = response

    def add(self, _request: int, event: Event) -> None:
        for _ in self._response.take(event):
            pass

    def body(self) -> Json:
        return self._response.ended()


class ResponseStream:
    """The typed events of the same response. Each call returns the bytes to send, often none."""

    def __init__(self, response: GrowingResponse) -> None:
        self._response = response
        self._sent = 0

    def event(self, _request: int, event: Event) -> bytes:
        return b"".join(map(self._numbered, self._response.take(event)))

    def end(self) -> bytes:
        whole = self._response.ended()
        return self._numbered({"type": f"response.{whole['status']}", "response": whole})

    def failure(self, error: LlmrunError) -> bytes:
        """The last event of a stream that broke."""
        first = b"" if self._sent else self.event(0, Started(0, 0))  # clients want its creation first
        return first + self._numbered({"type": "response.failed", "response": self._response.failed(error)})

    def _numbered(self, event: Json) -> bytes:
        numbered = {"type": event["type"], "sequence_number": self._sent, **event}
        self._sent += 1
        return sse.event(numbered, str(event["type"]))


def _usage(usage: Usage) -> Json:
    return {
        "input_tokens": usage.prompt,
        # What is computed is kept for later prompts, so that is what the cache took in.
        "input_tokens_details": {
            "cached_tokens": usage.cached,
            "cache_write_tokens": usage.prompt - usage.cached,
            **({"truncated_tokens": usage.truncated} if usage.truncated else {}),
        },
        "output_tokens": usage.completion,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning},
        "total_tokens": usage.prompt + usage.completion,
    }


def _turn(answer: Gathered) -> Message:
    """The assistant's turn to go on from. A call that the length limit cut is not part of it."""
    return Message(
        role="assistant",
        content=answer.text,
        reasoning=answer.reasoning or None,
        tool_calls=tuple(
            ToolCall(id=call.id, name=call.name, arguments=call.arguments or "{}")
            for call in answer.calls
            if _is_whole(call.arguments)
        ),
    )


def _is_whole(arguments: str) -> bool:
    try:
        msgspec.json.decode(arguments or "{}")
    except msgspec.DecodeError:
        return False
    return True


def joined(messages: tuple[Message, ...], turn: Message) -> tuple[Message, ...]:
    """The conversation with the turn behind it, or at the end of the one that the caller began."""
    last = messages[-1]
    if last.role != "assistant":
        return (*messages, turn)
    return (*messages[:-1], msgspec.structs.replace(turn, content=last.content + turn.content))
