"""A model's text in, as it comes; content, reasoning and tool calls out. Knows one template's syntax.

What is held back is only what could still become a marker. Text that turns out to be no call is content,
marker and all, for then the model did not call; but a tag that nobody writes in prose, such as `<|call|>`, is
left out wherever it stands for nothing. White space alone in front of a call or behind one is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from llmrun.chat.syntax.call import Head, next_call, read_arguments, read_close, read_head, read_tail
from llmrun.chat.syntax.form import Calls, Syntax
from llmrun.chat.syntax.markers import CALL, END, REASONING, STRAY, Markers
from llmrun.chat.syntax.pieces import (
    ArgumentsPiece,
    CallEndPiece,
    CallPiece,
    ContentPiece,
    Piece,
    ReasoningPiece,
    merged,
)
from llmrun.chat.syntax.source import Reading, Source
from llmrun.types import Tool


class OutputParser:
    """One answer's parser. Not safe for several threads.

    syntax  that of the template which rendered the prompt
    tools   what may be called: their schemas type arguments that the model writes as bare text, and where
            nothing but its looks tells a call, only these are called. Empty: any name, any type
    primed  what the answer begins with though the prompt already holds it (see `primed_by`); what it
            brings comes with the first pieces
    inline  reasoning is content, between its markers as they are written
    """

    def __init__(
        self, syntax: Syntax, tools: Iterable[Tool] = (), primed: str = "", *, inline: bool = False
    ) -> None:
        self._syntax = syntax
        self._markers = Markers(syntax)
        self._tools = {tool.name: tool for tool in tools}
        self._source = Source(primed)
        self._inline = inline
        self._pieces: list[Piece] = []
        self._call = 0
        self._blank: str | None = ""  # white space in front of what may be content; None: content has begun
        self._reading: Iterator[None] = self._turn()

    def feed(self, text: str) -> list[Piece]:
        """More of the model's text: what is certain now."""
        self._source.add(text)
        return self._step()

    def close(self, cut: bool = False) -> list[Piece]:
        """The text is over: the rest. `cut`: at the length limit, not by the model. Call it once."""
        self._source.ended = True
        self._source.cut = cut
        return self._step()

    def _step(self) -> list[Piece]:
        next(self._reading, None)
        pieces, self._pieces = self._pieces, []
        return merged(pieces)

    def _content(self, text: str) -> None:
        if self._blank is not None:
            text = self._blank + text
            self._blank = None if text.strip() else text
        if self._blank is None:
            self._pieces.append(ContentPiece(text))

    def _turn(self) -> Reading[None]:
        if not self._syntax.content.open.strip():
            yield from self._source.skip_exactly(self._syntax.content.open)
        while (kind := (yield from self._marker())) not in (None, END):
            marker = self._source.since_pin
            if kind != CALL:
                self._source.unpin()
            if kind == REASONING:
                yield from self._thinking(marker)
            if kind != STRAY and (kind != CALL or (yield from self._called())):
                self._blank = ""
        if self._blank and not self._call:
            self._pieces.append(ContentPiece(self._blank))

    def _marker(self) -> Reading[str | None]:
        """Read content up to a marker, which is pinned, and behind it: what it marks; None at the end."""
        source = self._source
        if self._blank is not None:
            source.pin()
            for text, kind in self._markers.opening:
                if (yield from source.accept(text)):
                    return kind
            source.unpin()
            if self._markers.bare and (yield from self._at_object()):
                source.pin()
                return CALL
        which = yield from source.until(self._markers.texts, self._content, self._syntax.end, pin=True)
        return None if which is None else self._markers.kinds[which]

    def _at_object(self) -> Reading[bool]:
        """Whether a JSON object stands here, behind white space, which then is read."""
        space = 0
        while (character := (yield from self._source.peek(space))).isspace():
            space += 1
        if character != "{":
            return False
        self._blank = (self._blank or "") + self._source.take(space)
        return True

    def _thinking(self, marker: str) -> Reading[None]:
        """Read reasoning behind `marker` and up to what ends it."""
        closes, source = self._markers.closes, self._source
        if not self._inline:
            yield from source.until(closes, lambda text: self._pieces.append(ReasoningPiece(text)))
            return
        self._content(marker)
        which = yield from source.until(closes, self._content, pin=True)
        if which is not None and closes[which] != self._syntax.end:
            self._content(source.since_pin)
        source.unpin()

    def _called(self) -> Reading[bool]:
        """Read the calls behind a marker. False where there is none: then the marker's first character is
        content, or its first tag nothing, and what follows is read anew."""
        calls, source = self._syntax.calls, self._source
        if calls is None:
            return False
        head = yield from self._head(calls)
        if head is None:
            if not self._markers.bare and source.cut and not source.text[source.at :].strip():
                source.at = len(source.text)
                return True
            source.back()
            if not (yield from self._stray()):
                self._content(source.take(1))
            return False
        while head is not None:
            source.unpin()
            yield from self._arguments(calls, head)
            source.pin()
            head = (yield from self._head(calls)) if (yield from next_call(source, calls)) else None
            if head is None:
                source.back()
        yield from read_close(source, calls)
        return True

    def _stray(self) -> Reading[bool]:
        """Read past a tag that is never content, if one stands here."""
        for tag in self._markers.strays:
            if length := (yield from self._source.matches(tag)):
                self._source.take(length)
                return True
        return False

    def _head(self, calls: Calls) -> Reading[Head | None]:
        head = yield from read_head(self._source, calls)
        known = head is not None and (not self._tools or head.name in self._tools)
        return head if known or not self._markers.bare else None

    def _arguments(self, calls: Calls, head: Head) -> Reading[None]:
        call, self._call = self._call, self._call + 1
        self._pieces.append(CallPiece(call, head.name, head.id))

        def out(text: str) -> None:
            self._pieces.append(ArgumentsPiece(call, text))

        if head.arguments is not None:
            out(head.arguments)
            complete = True
        else:
            tool = self._tools.get(head.name)
            complete = yield from read_arguments(self._source, calls, tool.parameters if tool else {}, out)
        self._pieces.append(CallEndPiece(call, complete))
        if complete:
            yield from read_tail(self._source, calls)
