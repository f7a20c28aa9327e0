"""What governs the answers to a request: its format, its tools and its reasoning, as the engine takes them.

tool_choice   reasoning, where the template has it, comes first and is free; then
required      a call, by the tool's schema from its first token; of a named tool, just one
none          text in which no call can begin
auto          text in which a call may begin; from its marker on it is kept to the tools' schemas. With an
              output format the answer is a call or keeps to the format
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from llmrun.chat import grammars as compose
from llmrun.chat.call_grammar import CallGrammar
from llmrun.chat.encoding import continued
from llmrun.chat.output_grammar import begun_ways, either, grammar_of, not_compiled
from llmrun.chat.syntax import Calls
from llmrun.chat.turn import Turn
from llmrun.chat.writable import check_format, check_tools
from llmrun.engine import (
    CallPart,
    Constraint,
    GrammarRefused,
    Grammars,
    Guide,
    ReasoningPart,
    Steering,
    Tokens,
)
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.llama import Vocab
from llmrun.types import GenerateRequest


@dataclass(frozen=True)
class Governing:
    """Of one request. `turn` is None for raw prompts; `shown` as in EngineRequest."""

    request: GenerateRequest
    turn: Turn | None
    vocab: Vocab
    grammars: Grammars
    shown: Mapping[int, bytes]

    def guides(self) -> tuple[Guide, ...]:
        """One for each answer, or none where answers are free. INVALID_REQUEST, naming the field, where the
        request asks for what cannot be kept to."""
        if self._choice in ("auto", "required"):
            check_tools(self.request.tools, self.vocab)
        answers = self._answers()
        reasoning, calls = self._reasoning(), self._calls()
        if reasoning is None and not calls:
            return answers
        tokens = Tokens(
            piece=lambda token: self.shown.get(token) or self.vocab.piece(token),
            encode=lambda text: continued(text.decode(), self.vocab, special=True),
            ends=self.vocab.is_eog,
        )
        return tuple(
            Steering(
                tokens, reasoning=reasoning, answer=answers[index] if answers else None, calls=tuple(calls)
            )
            for index in range(self.request.n)
        )

    @property
    def stops(self) -> tuple[str, ...]:
        """The stop strings that apply: an answer that can only be a call has no text for them."""
        return () if self._choice == "required" else tuple(stop for stop in self.request.options.stop if stop)

    @property
    def _choice(self) -> str | None:
        """None: no tools take part. A model that sees earlier calls, but has no tools, may make none."""
        if self.turn is None or self.turn.syntax.calls is None:
            return None
        return self.request.tool_choice.mode if self.request.tools else "none"

    # --- the answer

    def _answers(self) -> tuple[Constraint, ...]:
        request = self.request
        if self._choice == "required":
            several = request.tool_choice.parallel and request.tool_choice.name is None
            return self._started(self._call_grammar().whole(several=several, primed=self._primed))
        wanted = request.output_format
        if wanted is None:
            grammar = self._without_calls() if self._choice == "none" else self._bare_strict()
            return self._started(self._in_content(grammar)) if grammar else ()
        grammar = grammar_of(wanted)
        check_format(wanted, self.vocab)
        if self._choice == "auto" and not self._call_grammar().calls.marker:
            grammar = either(wanted, self._call_grammar().objects())
        self._need_an_end(wanted.field)
        try:
            answers = self.grammars.start(self._in_content(grammar), request.n)
        except GrammarRefused as refused:
            raise not_compiled(wanted, str(refused)) from None
        if self.turn is not None and self.turn.prefill:
            for answer in answers:  # where the format takes what is there already, it goes on from it
                any(answer.enter(text.encode()) for text in begun_ways(wanted, self.turn.prefill))
        return answers

    def _started(self, grammar: str) -> tuple[Constraint, ...]:
        self._need_an_end("tools")
        try:
            return self.grammars.start(grammar, self.request.n)
        except GrammarRefused as refused:
            raise LlmrunError(
                INVALID_REQUEST, f"the tools cannot be compiled: {str(refused)[:200]}", field="tools"
            ) from None

    def _need_an_end(self, field: str) -> None:
        if not self.vocab.eog_tokens:
            raise LlmrunError(
                INVALID_REQUEST,
                "this model has no end token, so its output cannot be constrained",
                field=field,
            )

    def _in_content(self, grammar: str) -> str:
        """`grammar` within the markers that the model writes around content."""
        if self.turn is None or self.turn.prefill or not self.turn.syntax.content.open.strip():
            return grammar
        content = self.turn.syntax.content
        before = "" if self._primed.strip() == content.open.strip() else content.open.lstrip()
        return compose.between(before, grammar, self._control)

    def _without_calls(self) -> str:
        """Text without any text that begins a call."""
        calls = self._call_grammar().calls
        markers = [text for text in (calls.marker, *calls.also) if text.strip()]
        spelled = [text for text in markers if not any(token in text for token in self._control)]
        return compose.text_without(spelled)

    def _bare_strict(self) -> str:
        """Text, or a call that only its looks tell: as strict as its tool wants it."""
        if self._choice != "auto" or not any(tool.strict for tool in self.request.tools):
            return ""
        calls = self._call_grammar()
        return "" if calls.calls.marker else calls.or_text(several=self.request.tool_choice.parallel)

    # --- the parts

    def _reasoning(self) -> ReasoningPart | None:
        turn, thinking = self.turn, self.request.thinking
        if turn is None or not turn.thinks or turn.syntax.reasoning is None:
            return None
        block = turn.syntax.reasoning
        begun = turn.primed.strip() == block.open.strip()
        close = block.close.strip()
        lead, _, separator = block.close.partition(close)
        return ReasoningPart(
            open=block.open.strip().encode(),
            close=close.encode(),
            begun=begun,
            budget=thinking.budget if thinking else None,
            lead=lead.encode(),
            separator=separator.encode(),
        )

    def _calls(self) -> Sequence[CallPart]:
        if self._choice != "auto":
            return ()
        request = self.request
        grammar = self._call_grammar()
        once = request.output_format is not None or not request.tool_choice.parallel
        parts = []
        for marker, behind in grammar.behind(several=request.tool_choice.parallel).items():
            follows = self._started(behind)[0] if behind is not None else None
            parts.append(
                CallPart(open=marker.encode(), close=_close(grammar.calls), grammar=follows, once=once)
            )
        return parts

    def _call_grammar(self) -> CallGrammar:
        assert self.turn is not None
        calls, choice = self.turn.syntax.calls, self.request.tool_choice
        assert calls is not None
        return CallGrammar(
            calls=calls,
            tools=self.request.tools,
            control=self._control,
            ends=[self.vocab.text(token) for token in self.vocab.eog_tokens],
            exact=choice.mode == "required",
            only=choice.name,
        )

    @property
    def _control(self) -> Mapping[str, int]:
        return {spelling.decode(): token for token, spelling in self.shown.items()}

    @property
    def _primed(self) -> str:
        return self.turn.primed if self.turn else ""


def _close(calls: Calls) -> bytes:
    """What ends calls that no grammar governs."""
    last = calls.call[-1]
    return (calls.close.strip() or (last.strip() if isinstance(last, str) else "")).encode()
