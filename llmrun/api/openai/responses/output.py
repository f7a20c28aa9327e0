"""From an answer's events to output items and the typed events of a stream, in order.

Reasoning, text and calls each open an item of their kind; an item closes when another opens, or at the
end. Pure: what a stream sends and what a whole response holds come from here alike.
"""

from __future__ import annotations

from collections.abc import Iterator

from llmrun.api.gathered import OfAnswer
from llmrun.api.oneline import Json
from llmrun.api.openai.logprobs import chat_logprobs
from llmrun.types import CallArguments, CallStarted, Reasoning, Stopped, Text


class _Open:
    """The item that is being written: `kind` is its type, `index` its place in the output."""

    def __init__(self, kind: str, index: int, item: Json) -> None:
        self.kind = kind
        self.index = index
        self.item = item
        self.text: list[str] = []
        self.logprobs: list[Json] = []

    def at(self, **fields: object) -> Json:
        """Where an event belongs."""
        place: Json = {"item_id": self.item["id"], "output_index": self.index}
        return {**place, **({} if self.kind == "function_call" else {"content_index": 0}), **fields}


class Output:
    """The output of one response; `items` are complete. `suffix` makes their ids unique."""

    def __init__(self, suffix: str, wants_logprobs: bool) -> None:
        self.items: list[Json] = []
        self._suffix = suffix
        self._wants_logprobs = wants_logprobs
        self._open: _Open | None = None

    def take(self, event: OfAnswer) -> Iterator[Json]:
        """The stream's events that follow from the answer's next."""
        match event:
            case Text():
                logprobs = chat_logprobs(event.logprobs) if self._wants_logprobs else []
                if event.text or logprobs:
                    yield from self._message(event.text, logprobs)
            case Reasoning() if event.text:
                yield from self._reasoning(event.text)
            case CallStarted():
                yield from self._begin(
                    "function_call", "fc", {"call_id": event.id, "name": event.name, "arguments": ""}
                )
            case CallArguments() if event.text:
                yield from self._piece("response.function_call_arguments.delta", event.text)
            case Stopped():
                if not self.items and self._open is None:
                    yield from self._begin_message()
                yield from self._end("incomplete" if event.reason == "length" else "completed")

    def _message(self, text: str, logprobs: list[Json]) -> Iterator[Json]:
        if self._open is None or self._open.kind != "message":
            yield from self._begin_message()
        assert self._open is not None
        self._open.logprobs += logprobs
        yield from self._piece("response.output_text.delta", text, logprobs=logprobs)

    def _begin_message(self) -> Iterator[Json]:
        yield from self._begin("message", "msg", {"role": "assistant", "content": []})
        yield self._part("response.content_part.added")

    def _reasoning(self, text: str) -> Iterator[Json]:
        if self._open is None or self._open.kind != "reasoning":
            yield from self._begin("reasoning", "rs", {"summary": [], "content": []})
            yield self._part("response.content_part.added")
        yield from self._piece("response.reasoning_text.delta", text)

    def _begin(self, kind: str, prefix: str, fields: Json) -> Iterator[Json]:
        yield from self._end("completed")
        index = len(self.items)
        item: Json = {
            "id": f"{prefix}_{self._suffix}_{index}",
            "type": kind,
            "status": "in_progress",
            **fields,
        }
        self._open = _Open(kind, index, item)
        yield {"type": "response.output_item.added", "output_index": index, "item": dict(item)}

    def _piece(self, kind: str, text: str, **fields: object) -> Iterator[Json]:
        assert self._open is not None
        self._open.text.append(text)
        yield {"type": kind, **self._open.at(delta=text, **fields)}

    def _part(self, kind: str) -> Json:
        """The event that shows the one part of the open item as it is now."""
        assert self._open is not None
        return {"type": kind, **self._open.at(part=_part_of(self._open))}

    def _end(self, status: str) -> Iterator[Json]:
        """Close the open item, if there is one."""
        closing = self._open
        if closing is None:
            return
        text = "".join(closing.text)
        if closing.kind == "function_call":
            closing.item["arguments"] = text
            done = closing.at(arguments=text, name=closing.item["name"])
            yield {"type": "response.function_call_arguments.done", **done}
        else:
            kind, more = "response.reasoning_text.done", {}
            if closing.kind == "message":
                kind, more = "response.output_text.done", {"logprobs": closing.logprobs}
            yield {"type": kind, **closing.at(text=text, **more)}
            yield self._part("response.content_part.done")
            closing.item["content"] = [_part_of(closing)]
        closing.item["status"] = status
        self.items.append(closing.item)
        self._open = None
        yield {"type": "response.output_item.done", "output_index": closing.index, "item": closing.item}


def _part_of(item: _Open) -> Json:
    text = "".join(item.text)
    if item.kind == "reasoning":
        return {"type": "reasoning_text", "text": text}
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": item.logprobs}
