"""What comes back of a request for vectors or scores, gathered for a reply. Knows no dialect."""

from __future__ import annotations

from llmrun.api.oneline import Json
from llmrun.types import Embedded, Event, Finished, Ranked, Timings, Usage

MAX_INPUTS = 2048


class Vectors:
    """A fold whose body is itself: turning many vectors into text takes long, and is done off the event
    loop. `usage` and `timings` are set at the end."""

    usage: Usage
    timings: Timings

    def __init__(self) -> None:
        self.embedded: list[Embedded] = []
        self.ranked: list[Ranked] = []

    def add(self, _request: int, event: Event) -> None:
        if isinstance(event, Embedded):
            self.embedded.append(event)
        elif isinstance(event, Ranked):
            self.ranked.append(event)
        elif isinstance(event, Finished):
            self.usage, self.timings = event.usage, event.timings

    def body(self) -> Vectors:
        return self

    def tokens(self) -> Json:
        """The usage, as OpenAI's embeddings and every rerank reply have it."""
        return {"prompt_tokens": self.usage.prompt, "total_tokens": self.usage.prompt}

    def notice(self) -> Json:
        """`truncated`, which is ours: the inputs that were cut, and of how many tokens; else nothing."""
        cut = [
            {"index": each.index, "tokens_cut": each.truncated} for each in self.embedded if each.truncated
        ]
        return {"truncated": cut} if cut else {}
