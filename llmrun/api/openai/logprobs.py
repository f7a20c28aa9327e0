"""Log probabilities in OpenAI's two shapes: a list of records (chat), parallel lists (completions).

A token may hold part of a character. Its text is then written with escapes such as `\\xf0\\x9f`, never
with U+FFFD; the chat shape carries the bytes beside it.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterable

from llmrun.api.oneline import Json
from llmrun.types import PromptToken, TokenLogprob, TopLogprob

LEAST = -9999.0
"""What OpenAI writes for a token that is all but impossible; JSON has no minus infinity."""


def _token_text(raw: bytes) -> str:
    return raw.decode("utf-8", "backslashreplace")


def _legacy_text(raw: bytes) -> str:
    text = _token_text(raw)
    return text if text.encode() == raw else f"bytes:{text}"


def _record(token: TokenLogprob | TopLogprob) -> Json:
    return {
        "token": _token_text(token.raw),
        "logprob": max(token.logprob, LEAST),
        "bytes": list(token.raw),
    }


def _number(token: TokenLogprob | TopLogprob | PromptToken) -> float | None:
    return None if token.logprob is None else max(token.logprob, LEAST)


def chat_logprobs(tokens: Iterable[TokenLogprob]) -> list[Json]:
    """The records of `choices[].logprobs.content`."""
    return [{**_record(token), "top_logprobs": [_record(top) for top in token.top]} for token in tokens]


class LegacyLogprobs:
    """The `logprobs` of one choice of a completion, over its whole stream.

    `text_offset` counts the characters of the choice's text in front of each token.

    echoed  the prompt, where the text begins with it: many vocabularies put a space in front of every text,
            which is then no part of the first token here
    """

    def __init__(self, echoed: str | tuple[int, ...] = ()) -> None:
        self._drops_space = isinstance(echoed, str) and not echoed.startswith(" ")
        self._offset = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    def take(self, tokens: Iterable[TokenLogprob | PromptToken]) -> Json:
        """The parallel lists for the next tokens; a prompt's first has null for its probability."""
        tokens = list(tokens)
        texts = [token.raw for token in tokens]
        if texts and self._drops_space and isinstance(tokens[0], PromptToken):
            texts[0] = texts[0].removeprefix(b" ")
        self._drops_space = False
        offsets = []
        for text in texts:
            offsets.append(self._offset)
            self._offset += len(self._decoder.decode(text))
        return {
            "tokens": [_legacy_text(text) for text in texts],
            "token_logprobs": [_number(token) for token in tokens],
            "top_logprobs": [self._top(token) for token in tokens],
            "text_offset": offsets,
        }

    @staticmethod
    def _top(token: TokenLogprob | PromptToken) -> dict[str, float | None] | None:
        """The likeliest alternatives and the token itself; None where no alternatives were asked for."""
        if not token.top:
            return None
        top = {_legacy_text(other.raw): _number(other) for other in token.top}
        top.setdefault(_legacy_text(token.raw), _number(token))
        return top
