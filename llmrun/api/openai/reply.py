"""What the replies of both generation routes have in common: the head, the usage, the timings."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

import llmrun
from llmrun.api import sse
from llmrun.api.oneline import Json
from llmrun.api.openai.sampling import MAX_CHOICES
from llmrun.api.timings import TimingsSoFar, llama_timings, prompt_progress
from llmrun.types import Event, Finished, Progress, Timings, Usage

FINGERPRINT = f"fp_llmrun_{llmrun.__version__}"
DONE = b"data: [DONE]\n\n"


@dataclass(frozen=True)
class Head:
    """The reply's own name. `created` is in unix seconds."""

    id: str
    created: int
    model: str

    def fields(self, kind: str) -> Json:
        """The first fields of a reply or chunk of that `object` kind."""
        return {
            "id": self.id,
            "object": kind,
            "created": self.created,
            "model": self.model,
            "system_fingerprint": FINGERPRINT,
        }


def prompt_details(usage: Usage) -> Json:
    """What is told of a prompt's tokens; `truncated_tokens` only where some were left out."""
    left_out = {"truncated_tokens": usage.truncated} if usage.truncated else {}
    return {"cached_tokens": usage.cached, **left_out}


class Tally:
    """Usage and timings over the requests that make one reply.

    Tokens are summed. Of each time the longest counts: the requests run beside one another.
    """

    def __init__(self) -> None:
        self._usage: list[Usage] = []
        self._timings: list[Timings] = []

    def add(self, finished: Finished) -> None:
        self._usage.append(finished.usage)
        self._timings.append(finished.timings)

    def total(self) -> Usage:
        """The tokens of all requests."""
        names = Usage.__struct_fields__
        return Usage(**{name: sum(getattr(usage, name) for usage in self._usage) for name in names})

    def usage(self) -> Json:
        """The same as both completion routes show it."""
        total = self.total()
        return {
            "prompt_tokens": total.prompt,
            "completion_tokens": total.completion,
            "total_tokens": total.prompt + total.completion,
            "prompt_tokens_details": prompt_details(total),
            "completion_tokens_details": {
                "reasoning_tokens": total.reasoning,
                "accepted_prediction_tokens": total.accepted,
                "rejected_prediction_tokens": total.drafted - total.accepted,
            },
        }

    def timings(self) -> Json:
        names = Timings.__struct_fields__
        longest = {name: max(getattr(timings, name) for timings in self._timings) for name in names}
        return llama_timings(self.total(), Timings(**longest))


class ChunkStream:
    """The end of a stream, the same for both routes.

    The timings belong on the last chunk, which is known to be the last only when all is finished: so
    a chunk with a finish reason waits for what comes after it. If that is an error, it is not sent.

    wants_timings  every chunk has the timings so far   choices  of each request, which are numbered on
    """

    def __init__(
        self, head: Json, wants_usage: bool, *, wants_timings: bool = False, choices: int = MAX_CHOICES
    ) -> None:
        self._head = {**head, "choices": [], "usage": None} if wants_usage else {**head, "choices": []}
        self._wants_usage = wants_usage
        self._so_far = TimingsSoFar() if wants_timings else None
        self._choices = choices
        self._tally = Tally()
        self._held: Json | None = None

    def note(self, request: int, event: Event) -> None:
        """Take what an event says of the times so far."""
        if self._so_far is not None:
            self._so_far.take(request, event)

    def chunk(self, choice: Json) -> bytes:
        """A chunk with this one choice, behind the one that waited, if any."""
        chunk = {**self._head, "choices": [choice]}
        if self._so_far is not None:
            place = choice["index"]
            assert isinstance(place, int)
            chunk["timings"] = self._so_far.of(*divmod(place, self._choices))
        return self._release() + sse.event(chunk)

    def hold(self, choice: Json) -> bytes:
        """Keep back a chunk that ends a choice; the bytes of the one that waited before it."""
        before = self._release()
        self._held = {**self._head, "choices": [choice]}
        return before

    def progress(self, event: Progress) -> bytes:
        """A chunk without choices that says how far a prompt is, under llama-server's name."""
        done = prompt_progress(event.processed, event.total, event.cached, event.elapsed_ms)
        return self._release() + sse.event({**self._head, "prompt_progress": done})

    def finished(self, event: Finished) -> None:
        self._tally.add(event)

    def end(self) -> bytes:
        """The last bytes of a stream that went well."""
        last: Json = {"timings": self._tally.timings()}
        if self._wants_usage:
            last = {**self._head, "usage": self._tally.usage(), **last}
            return self._release() + sse.event(last) + DONE
        held, self._held = self._held or self._head, None
        return sse.event({**held, **last}) + DONE

    def _release(self) -> bytes:
        held, self._held = self._held, None
        return sse.event(held) if held else b""


def encode(body: Json) -> bytes:
    """A whole reply as JSON."""
    return msgspec.json.encode(body)
