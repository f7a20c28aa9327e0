"""A request's prompt to token ids: a conversation through the model's template, raw text, or ids.

It knows messages and a vocabulary, but no sequences and no model files.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from llmrun.chat.bounds import bounded
from llmrun.chat.control import ControlTokens
from llmrun.chat.encoding import encode_marked
from llmrun.chat.infill import infill_prompt
from llmrun.chat.rendering import Renderer
from llmrun.chat.template import ChatTemplate
from llmrun.chat.turn import Turn
from llmrun.chat.vocab import Vocab
from llmrun.errors import CONTEXT_LENGTH, INVALID_REQUEST, NO_TEMPLATE, TEMPLATE, LlmrunError
from llmrun.types import GenerateRequest

FAR = 4
"""Times the context. Up to there a prompt that is too long is counted exactly."""


@dataclass(frozen=True)
class Prompt:
    """ids   at least one, BOS in front where the model wants it
    turn  the conversation they come from; None: a raw prompt
    """

    ids: list[int]
    turn: Turn | None = None


class Prompter:
    """Turns requests for one loaded model into token ids. Used by one thread at a time.

    template  Jinja source of the model's chat template, None where it has none. One that cannot be read
              fails the conversations, not the model: raw prompts need none.
    ctx       tokens that the model's context holds, where that is known. Of a prompt that has far more, the
              rest is not tokenised: that takes seconds, in which nobody else's prompt is.
    """

    def __init__(self, template: str | None, vocab: Vocab, ctx: int | None = None) -> None:
        self._vocab = vocab
        self._ctx = ctx
        self._most = None if ctx is None else FAR * ctx
        self._lacking = LlmrunError(NO_TEMPLATE, "this model has no chat template")
        self._renderer: Renderer | None = None
        self._control = ControlTokens(vocab)
        if template is not None:
            try:
                with bounded():
                    compiled = ChatTemplate(template)
            except LlmrunError as error:
                self._lacking = error
            else:
                self._control = ControlTokens(vocab, compiled.literals)
                self._renderer = Renderer(compiled, self._control, _edges(vocab))

    def learn(self) -> None:
        """Find out now what answers to conversations look like, so that no request waits for it."""
        if self._renderer is not None:
            _ = self._renderer.syntax

    def prompt(self, request: GenerateRequest) -> Prompt:
        """The request's prompt. LlmrunError NO_TEMPLATE, TEMPLATE or INVALID_REQUEST (with the field) where
        there is none, and CONTEXT_LENGTH where it has far more tokens than the context holds."""
        turn = None
        if request.messages is not None:
            turn = self._turn(request)
            ids = self._begun(encode_marked(turn.text, turn.mark, self._control, self._vocab, self._most))
            if not ids:
                raise LlmrunError(TEMPLATE, "the chat template makes an empty prompt of these messages")
        elif request.suffix is not None:
            ids = self._begun(
                infill_prompt(request.prompt, request.suffix, request.snippets, self._vocab, self._most)
            )
        else:
            ids = self._raw(() if request.prompt is None else request.prompt)
        if not ids:
            raise LlmrunError(
                INVALID_REQUEST, "the prompt is empty", hint="send at least one token", field="prompt"
            )
        if self._most is not None and len(ids) > self._most:
            raise LlmrunError(
                CONTEXT_LENGTH,
                f"the prompt has at least {len(ids)} tokens, but the context holds {self._ctx}",
                prompt_tokens=len(ids),
                context=self._ctx,
            )
        return Prompt(self._behind(request.context, ids) if request.context else ids, turn)

    def encode(self, request: GenerateRequest) -> list[int]:
        """The ids of the request's prompt. Errors as for `prompt`."""
        return self.prompt(request).ids

    def render(self, request: GenerateRequest) -> str:
        """The text of the request's conversation, as the template writes it. Errors as for `prompt`."""
        turn = self._turn(request)
        return str(turn.mark.clean(turn.text))

    def _turn(self, request: GenerateRequest) -> Turn:
        if self._renderer is None:
            raise self._lacking.again()
        return self._renderer.render(request)

    def _begun(self, ids: list[int]) -> list[int]:
        """`ids` with BOS in front where the model wants it, and never twice."""
        bos = self._vocab.bos
        if bos is None or not self._vocab.add_bos or ids[:1] == [bos]:
            return ids
        return [bos, *ids]

    def _raw(self, prompt: str | Sequence[int | str]) -> list[int]:
        """The ids of text, of ids, or of both in turn; BOS goes in front where text begins."""
        pieces = [prompt] if isinstance(prompt, str) else prompt
        ids: list[int] = []
        for piece in pieces:
            if isinstance(piece, str):
                ids += self._vocab.tokenize(piece, special=True, most=self._most)
            else:
                ids.append(piece)
            if self._most is not None and len(ids) > self._most:
                break
        ids = self.checked(ids, "prompt")
        return self._begun(ids) if pieces and isinstance(pieces[0], str) else ids

    def _behind(self, context: Sequence[int], ids: list[int]) -> list[int]:
        """`ids` behind earlier ones, without a BOS of their own."""
        begun = self._vocab.add_bos and ids[0] == self._vocab.bos
        return [*self.checked(context, "context"), *(ids[1:] if begun else ids)]

    def checked(self, ids: Sequence[int], field: str) -> list[int]:
        """`ids`, which a client sent as `field`. INVALID_REQUEST where one is none of the model's."""
        for token in ids:
            if not 0 <= token < self._vocab.size:
                raise LlmrunError(
                    INVALID_REQUEST,
                    f"{field} holds token {token}, but the model's tokens are 0 to {self._vocab.size - 1}",
                    hint="use this model's own token ids",
                    field=field,
                )
        return list(ids)


def _edges(vocab: Vocab) -> dict[str, str]:
    return {
        "bos_token": "" if vocab.bos is None else vocab.text(vocab.bos),
        "eos_token": "" if vocab.eos is None else vocab.text(vocab.eos),
    }
