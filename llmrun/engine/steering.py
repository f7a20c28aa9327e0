"""An answer in parts: reasoning, then text in which calls may begin, each under a grammar of its own.

Pure: token ids and their bytes in, what may and must come next out. Markers are bytes that the caller
names; nothing here knows what they mean to a model. An answer of one part needs only a `Constraint`.

A marker may end in the middle of a token. What the token says beyond it goes to the grammar that begins
there; where that grammar does not take it, the marker's own tokens come in the token's place.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from llmrun.engine.guide import Grammar

_BLANK = b" \t\r\n"


@dataclass(frozen=True, kw_only=True)
class ReasoningPart:
    """How the reasoning in front of an answer is told from it.

    open       bytes that begin it, where the model writes them itself
    close      bytes that end it
    begun      whether the prompt ends inside it
    budget     tokens until it is closed; None: as many as it takes
    lead       bytes in front of `close`, and
    separator  behind it, written where it is forced
    """

    open: bytes
    close: bytes
    begun: bool
    budget: int | None = None
    lead: bytes = b""
    separator: bytes = b""


@dataclass(frozen=True, kw_only=True)
class CallPart:
    """Calls that may begin anywhere in free text.

    open     bytes that begin one
    close    bytes that end one without a grammar; empty: it goes on to the answer's end
    grammar  what follows `open`; None: anything
    once     whether the answer ends with its first call
    """

    open: bytes
    close: bytes = b""
    grammar: Grammar | None = None
    once: bool = False


@dataclass(frozen=True, kw_only=True)
class Tokens:
    """What is known of token ids.

    piece   a token's bytes, with the spellings of the control tokens that are markers
    encode  the tokens of a text in which markers may stand
    ends    whether a token ends a generation
    """

    piece: Callable[[int], bytes]
    encode: Callable[[bytes], list[int]]
    ends: Callable[[int], bool]


class _At(enum.Enum):
    """Where an answer is. BEGINNING: it may begin with reasoning. CHOOSING: its grammar begins, or what one
    of the openers begins. TALKING: free text, or a call without a grammar. GOVERNED: in a grammar."""

    BEGINNING = enum.auto()
    CHOOSING = enum.auto()
    THINKING = enum.auto()
    TALKING = enum.auto()
    GOVERNED = enum.auto()


class Steering:
    """One answer's way through its parts; a `Guide`.

    reasoning  None: the answer has none
    answer     the grammar of what follows the reasoning; None: free text
    calls      may begin anywhere in free text; in place of an answer that has a grammar
    """

    def __init__(
        self,
        tokens: Tokens,
        *,
        reasoning: ReasoningPart | None = None,
        answer: Grammar | None = None,
        calls: tuple[CallPart, ...] = (),
    ) -> None:
        self._tokens = tokens
        self._reasoning = reasoning or ReasoningPart(open=b"", close=b"", begun=False)
        self._answer = answer
        self._calls = calls
        self._call: CallPart | None = None
        self._grammar: Grammar | None = None  # the one that governs
        self._openers: dict[int, list[int]] = {}  # what may come instead of the answer, by first token
        self._queue: list[int] = []  # tokens that no grammar forces, but this class
        self._tail = b""  # the end of the text, where it could still become a marker
        self._blank = False  # whether nothing visible came since reasoning or a call ended
        self._ended = False
        self._at = _At.TALKING
        self.thought = 0
        self.quiet = False
        if reasoning is not None and reasoning.begun:
            self._at = _At.THINKING
            self._keep_budget()
        elif answer is not None:
            self._choose([reasoning.open] if reasoning is not None else [])
        elif reasoning is not None:
            self._at = _At.BEGINNING

    @property
    def ended(self) -> bool:
        return not self._queue and (self._ended or (self._grammar is not None and self._grammar.ended))

    def forced(self) -> list[int]:
        if self._queue or self._grammar is None:
            return list(self._queue)
        return self._grammar.forced()

    def allowed(self) -> npt.NDArray[np.intp] | None:
        if self._at is _At.CHOOSING:
            assert self._answer is not None
            return np.union1d(self._answer.allowed(), np.array([*self._openers], np.intp))
        return None if self._grammar is None else self._grammar.allowed()

    def replaces(self, token: int) -> bool:
        if self._at in (_At.CHOOSING, _At.GOVERNED):
            return False
        if self._tokens.ends(token):
            if self._at is _At.THINKING and self._answer is not None:  # whatever comes, an answer must
                self._close()
            return bool(self._queue)
        text = self._tail + self._tokens.piece(token)
        marker, grammar = self._begun_by(text)
        if grammar is None:
            return False
        end = text.index(marker) + len(marker)
        if self._takes(grammar, text[end:]):
            return False
        self._queue = self._tokens.encode(text[len(self._tail) : end])
        return True

    def accept(self, token: int) -> None:
        mine = bool(self._queue)
        if mine:
            del self._queue[0]
        self.quiet = (
            self._at is _At.THINKING or self._call is not None or (mine and self._grammar is not None)
        )
        text = self._tail + self._tokens.piece(token)
        if self._at is _At.THINKING:
            self.thought += 1
            self._think(text)
        elif self._at is _At.BEGINNING:
            self._begin(text)
        elif self._at is _At.CHOOSING:
            if not mine:
                self._chosen(token, text)
        elif self._grammar is None:
            self._say(text)
        elif not mine:
            self._grammar.accept(token)
            self._leave_call()

    # --- the answer's beginning

    def _choose(self, openers: list[bytes]) -> None:
        """The answer's grammar begins, where no opener's first token comes."""
        openers = [*openers, *(call.open for call in self._calls)]
        encoded = [self._tokens.encode(opener) for opener in openers]
        self._openers = {tokens[0]: tokens for tokens in reversed(encoded) if tokens}
        self._at = _At.CHOOSING if self._openers else _At.GOVERNED
        self._grammar = None if self._openers else self._answer

    def _chosen(self, token: int, text: bytes) -> None:
        opener = self._openers.get(token)
        if opener is None:
            self._at, self._grammar = _At.GOVERNED, self._answer
            assert self._grammar is not None
            self._grammar.accept(token)
            return
        self._queue = opener[1:]
        self._begin(text)

    def _begin(self, text: bytes) -> None:
        """The first visible text decides whether the answer begins with reasoning."""
        said, opener = text.lstrip(_BLANK), self._reasoning.open
        if opener and said.startswith(opener):
            self._at, self.quiet = _At.THINKING, True
            self._think(said[len(opener) :])
        elif opener.startswith(said) and opener:
            self._at, self._tail, self.quiet = _At.BEGINNING, text, True
        else:
            self._at, self._tail = _At.TALKING, b""
            self._say(text)

    # --- reasoning

    def _think(self, text: bytes) -> None:
        close = self._reasoning.close
        at = text.find(close)
        if at < 0:
            self._tail = _tail(text, close)
            self._keep_budget()
            return
        self._tail, self._blank, self.quiet = b"", True, True
        rest = text[at + len(close) :]
        if self._answer is None:
            self._at = _At.TALKING
            self._say(rest)
            return
        self._choose([])
        if rest.strip(_BLANK):
            self._at, self._grammar = _At.GOVERNED, self._answer
            self._grammar.enter(rest.lstrip(_BLANK))
        elif not rest and not self._queue:
            self._queue = self._tokens.encode(self._reasoning.separator)

    def _keep_budget(self) -> None:
        budget = self._reasoning.budget
        if budget is not None and self.thought >= budget and not self._queue:
            self._close()

    def _close(self) -> None:
        """Force what is not yet written of the close marker."""
        reasoning = self._reasoning
        missing = reasoning.close[len(self._tail) :] if self._tail else reasoning.lead + reasoning.close
        self._queue = self._tokens.encode(missing + reasoning.separator)

    # --- text and calls

    def _say(self, text: bytes) -> None:
        """Free text, in which a call may begin or, without a grammar of its own, end."""
        if self._blank:
            text = text.lstrip(_BLANK)
            self._blank = not text
            self.quiet = self._blank
        if self._call is not None:
            self._in_call(text)
            return
        part, at = self._first_call(text)
        if part is None:
            self._tail = max((_tail(text, call.open) for call in self._calls), key=len, default=b"")
            return
        self._call, self._tail, self.quiet = part, b"", True
        rest = text[at + len(part.open) :]
        if part.grammar is None:
            self._in_call(rest)
        else:
            self._at, self._grammar = _At.GOVERNED, part.grammar.fresh()
            self._grammar.enter(rest)
            self._leave_call()

    def _in_call(self, text: bytes) -> None:
        assert self._call is not None
        close = self._call.close
        at = text.find(close) if close else -1
        if at < 0:
            self._tail = _tail(text, close)
        else:
            self._after_call(text[at + len(close) :])

    def _leave_call(self) -> None:
        if self._call is not None and self._grammar is not None and self._grammar.ended:
            self._after_call(b"")

    def _after_call(self, rest: bytes) -> None:
        assert self._call is not None
        self._ended = self._call.once
        self._at, self._grammar = _At.TALKING, None
        self._call, self._tail, self._blank = None, b"", True
        if rest and not self._ended:
            self._say(rest)

    # --- markers

    def _begun_by(self, text: bytes) -> tuple[bytes, Grammar | None]:
        """The marker that `text` completes, and the grammar that begins behind it."""
        if self._at is _At.THINKING:
            close = self._reasoning.close
            return close, self._answer if close in text else None
        part, _ = (None, -1) if self._call is not None else self._first_call(text)
        return (part.open, part.grammar) if part is not None else (b"", None)

    def _takes(self, grammar: Grammar, rest: bytes) -> bool:
        rest = rest.lstrip(_BLANK) if self._at is _At.THINKING else rest
        return not rest or grammar.fresh().enter(rest)

    def _first_call(self, text: bytes) -> tuple[CallPart | None, int]:
        found = [(at, -len(call.open), call) for call in self._calls if (at := text.find(call.open)) >= 0]
        at, _, part = min(found, key=lambda hit: hit[:2], default=(-1, 0, None))
        return part, at


def _tail(text: bytes, marker: bytes) -> bytes:
    """The longest end of `text` that begins `marker`, short of the whole."""
    for length in range(min(len(text), len(marker) - 1), 0, -1):
        if text.endswith(marker[:length]):
            return text[-length:]
    return b""
