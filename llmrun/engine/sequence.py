"""One answer's whole progress: its tokens, where their KV lies, what has been said."""

from __future__ import annotations

import enum

import numpy as np

from llmrun.engine.kv_memory import SavedState
from llmrun.engine.lines import Lines
from llmrun.engine.request import EngineRequest
from llmrun.engine.resident import Resident, Tokens
from llmrun.engine.text import TextStream
from llmrun.types import FinishReason, Limit, Text, TokenLogprob


class State(enum.Enum):
    """WAITING: not begun. RUNNING: holds a slot, prefilling or decoding. SWAPPED: its KV lies in host
    memory. ENDED: no longer scheduled."""

    WAITING = "waiting"
    RUNNING = "running"
    SWAPPED = "swapped"
    ENDED = "ended"


class Sequence:
    """Prompt tokens and those generated after them. Changed by the engine thread only.

    `draft` are guesses at the tokens to come, computed with the next row that is sampled from. They are
    no part of the answer. `drafted` of them were computed so far, `accepted` of these became part of it.
    `first_token`, `last_token`: when its first and its newest came, on the engine's clock.
    `scored`: the prompt's tokens before this place need no log probability any more.
    """

    def __init__(self, request: EngineRequest, index: int) -> None:
        self.request = request
        self.index = index
        self.state = State.WAITING
        self.kv: Resident | None = None
        self.saved: SavedState | None = None
        self.saved_length = 0
        self.cached = 0
        wanted = request.score_from if index == 0 else None
        self.scored = len(request.prompt) if wanted is None else wanted
        self.text = TextStream(request.stop)
        self.constraint = request.constraints[index] if request.constraints else None
        self.lines = Lines.of(request.min_indent, request.line_seconds)
        self.pending_logprobs: list[TokenLogprob] = []
        self.pending_tokens: list[int] = []
        self.first_token: float | None = None
        self.last_token: float | None = None
        self.draft: tuple[int, ...] = ()
        self.drafted = self.accepted = 0
        self._tokens = np.array(request.prompt, np.int32)
        self.prompt_length = self.length = self._known = len(request.prompt)
        self.left_out = 0

    @property
    def tokens(self) -> Tokens:
        """Prompt and generated tokens, shape [length]; a view."""
        return self._tokens[: self.length]

    @property
    def generated(self) -> int:
        return self.length + self.left_out - self.prompt_length

    @property
    def computed(self) -> int:
        """Tokens whose KV is in the cache now."""
        return self.kv.length if self.kv else 0

    @property
    def pending(self) -> int:
        """Tokens still to be computed before the next one can be sampled."""
        return self.length - self.computed

    @property
    def decoding(self) -> bool:
        """Whether only new tokens are pending: the sampled one and those that a grammar forced."""
        return self.computed >= self._known

    @property
    def full(self) -> bool:
        """Whether tokens must be left out before the answer can go on."""
        shift = self.request.shift
        return shift is not None and self.length >= shift.window

    def leave_out(self) -> int:
        """Leave out the oldest half of what is behind the tokens to keep; how many those are."""
        assert self.request.shift is not None
        keep = min(self.request.shift.keep, self.request.shift.window // 2)
        count = (self.length - keep + 1) // 2
        self._tokens[keep : self.length - count] = self._tokens[keep + count : self.length].copy()
        self.left_out += count
        self.length = self._known = self.length - count
        return keep

    @property
    def scoring(self) -> bool:
        """Whether the logits of the prompt's own rows are wanted."""
        return self.scored < self.prompt_length

    def append(self, token: int) -> None:
        """Take a generated token as one to compute."""
        if self.length == len(self._tokens):
            self._tokens = np.concatenate([self._tokens, np.empty(max(self.length, 64), np.int32)])
            if self.kv is not None:
                self.kv.tokens = self._tokens
        self._tokens[self.length] = token
        self.length += 1

    def said(self, text: str) -> Text | None:
        """`text` as the next event of this answer, with what was noted of its tokens since the last. None
        where there is nothing to say. Log probabilities of tokens whose text is withheld wait for it."""
        noted, withheld = self.pending_logprobs, len(self.text.withheld.encode())
        count = len(noted)
        while withheld and count and len(noted[count - 1].raw) <= withheld:
            count -= 1
            withheld -= len(noted[count].raw)
        if not text and not count:
            return None
        event = Text(self.index, text, tuple(noted[:count]), tuple(self.pending_tokens))
        del noted[:count]
        self.pending_tokens.clear()
        return event

    def settle(self, kv: Resident) -> None:
        """Run in the slot of `kv`, which then follows this sequence's tokens."""
        kv.tokens = self._tokens
        self.kv = kv
        self.state = State.RUNNING

    def finish_reason(self, ended: bool, ctx: int) -> FinishReason | None:
        """Why the answer is complete after its newest token; None while it is not. `ended`: the token
        ends a generation, or the grammar lets nothing follow it."""
        if ended or self.text.stopped is not None:
            return "stop"
        return None if self.limit(ctx) is None else "length"

    def limit(self, ctx: int) -> Limit | None:
        """The limit that the answer has reached, if it has."""
        most = self.request.max_tokens
        if most is not None and self.generated >= most:
            return self.request.limited_by
        return "context" if self.length >= ctx and self.request.shift is None else None
