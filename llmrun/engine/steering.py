"""An answer in parts: reasoning, then text in which calls may begin, each under a grammar of its own.

Pure: token ids and their bytes in, what may and must come next out. Markers are bytes that the caller
names; nothing here knows what they mean to a model. An answer of one part needs only a `Constraint`.

A marker may end in the middle of a token. What the token says beyond it goes to the grammar that begins
there; where that grammar does not take it, the marker's own tokens come in the token's place.
"""

from __future__ import annotations

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
    separator  bytes between `close` and the answer, written where they are forced
    """

    open: bytes
    close: bytes
    begun: bool
    budget: int | None = None
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


class Steering:
    """One answer's way through its parts; a `Guide`.

    reasoning  None: the answer has none
    opening    a grammar for the beginning of an answer that may also begin with `reasoning.open`
    answer     the grammar of what follows the reasoning; None: free text, in which `calls` may begin
    """

    def __init__(
        self,
        tokens: Tokens,
        *,
        reasoning: ReasoningPart | None = None,
        opening: Grammar | None = None,
        answer: Grammar | None = None,
        calls: tuple[CallPart, ...] = (),
    ) -> None:
        self._tokens = tokens
        self._reasoning = reasoning or ReasoningPart(open=b"", close=b"", begun=False)
        self._answer = answer
        self._calls = calls
        self._thinking = reasoning is not None and reasoning.begun
        self._beginning = reasoning is not None and not reasoning.begun  # it may or may not think
        self._call: CallPart | None = None
        self._grammar = answer if reasoning is None else opening if self._beginning else None
        self._queue: list[int] = []  # tokens that no grammar forces, but this class
        self._tail = b""  # the end of the text, where it could still become a marker
        self._blank = False  # whether nothing visible came since reasoning or a call ended
        self._ended = False
        self.thought = 0
        self.quiet = False
        self._keep_budget()

    @property
    def ended(self) -> bool:
        return not self._queue and (self._ended or (self._grammar is not None and self._grammar.ended))

    def forced(self) -> list[int]:
        if self._queue or self._grammar is None:
            return list(self._queue)
        return self._grammar.forced()

    def allowed(self) -> npt.NDArray[np.intp] | None:
        return None if self._grammar is None else self._grammar.allowed()

    def replaces(self, token: int) -> bool:
        if self._grammar is not None:
            return False
        if self._tokens.ends(token):
            if self._thinking and self._answer is not None:  # whatever comes, an answer must
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
        self.quiet = self._thinking or self._call is not None
        text = self._tail + self._tokens.piece(token)
        if self._thinking:
            self.thought += 1
            self._think(text)
        elif self._beginning:
            self._begin(token, text)
        elif self._grammar is None:
            self._say(text)
        elif mine:
            self.quiet = True
        else:
            self._grammar.accept(token)
            self._leave_call()

    # --- reasoning

    def _begin(self, token: int, text: bytes) -> None:
        """The first visible text decides whether the answer begins with reasoning."""
        if self._grammar is not None:
            self._grammar.accept(token)
        said, opener = text.lstrip(_BLANK), self._reasoning.open
        if said.startswith(opener):
            self._beginning, self._thinking, self.quiet = False, True, True
            self._grammar = None
            self._think(said[len(opener) :])
        elif opener.startswith(said):
            self._tail, self.quiet = text, True
        else:
            self._beginning, self._tail = False, b""
            if self._grammar is None:
                self._say(text)

    def _think(self, text: bytes) -> None:
        close = self._reasoning.close
        at = text.find(close)
        if at < 0:
            self._tail = _tail(text, close)
            self._keep_budget()
            return
        self._thinking, self._tail, self._blank, self.quiet = False, b"", True, True
        rest = text[at + len(close) :]
        self._grammar = self._answer
        if self._grammar is None:
            self._say(rest)
        elif rest.strip(_BLANK):
            self._grammar.enter(rest.lstrip(_BLANK))
        elif not rest and not self._queue:
            self._queue = self._tokens.encode(self._reasoning.separator)

    def _keep_budget(self) -> None:
        budget = self._reasoning.budget
        if self._thinking and budget is not None and self.thought >= budget and not self._queue:
            self._close()

    def _close(self) -> None:
        """Force what is not yet written of the close marker."""
        missing = self._reasoning.close[len(self._tail) :]
        self._queue = self._tokens.encode(missing + self._reasoning.separator)

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
            self._grammar = part.grammar.fresh()
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
            self._grammar = None
            self._after_call(b"")

    def _after_call(self, rest: bytes) -> None:
        assert self._call is not None
        self._ended = self._call.once
        self._call, self._tail, self._blank = None, b"", True
        if rest and not self._ended:
            self._say(rest)

    # --- markers

    def _begun_by(self, text: bytes) -> tuple[bytes, Grammar | None]:
        """The marker that `text` completes, and the grammar that begins behind it."""
        if self._thinking:
            close = self._reasoning.close
            return close, self._answer if close in text else None
        part, _ = (None, -1) if self._call is not None else self._first_call(text)
        return (part.open, part.grammar) if part is not None else (b"", None)

    def _takes(self, grammar: Grammar, rest: bytes) -> bool:
        rest = rest.lstrip(_BLANK) if self._thinking else rest
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
