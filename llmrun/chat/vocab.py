"""What chat needs of a model's vocabulary, as an interface. Native code lives behind it, not here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol


class Vocab(Protocol):
    """A vocabulary as `llama_tokenize` knows it. Every id is in `range(size)`."""

    @property
    def size(self) -> int:
        """Number of tokens."""

    @property
    def bos(self) -> int | None:
        """The token a text begins with, if the model has one."""

    @property
    def eos(self) -> int | None:
        """The token a text ends with, if the model has one."""

    @property
    def add_bos(self) -> bool:
        """Whether the model wants `bos` in front of every prompt."""

    @property
    def fim(self) -> tuple[int, int, int] | None:
        """The tokens in front of a prefix, a suffix and the middle to fill in, if the model has them."""

    @property
    def fim_repo(self) -> int | None:
        """The token in front of a project's name, for models that fill in with a project in view."""

    @property
    def fim_file(self) -> int | None:
        """The token in front of a file's name, for the same."""

    def control_tokens(self) -> Mapping[str, int]:
        """Spelling -> id of the tokens with attribute CONTROL or UNKNOWN (`<|im_end|>`, `</s>`)."""

    def user_defined_tokens(self) -> Mapping[str, int]:
        """Spelling -> id of the tokens with attribute USER_DEFINED.

        llama.cpp finds them in any text, special or not. Some are markup that only a template should
        write (`<|START_OF_TURN_TOKEN|>`, `<|channel|>`, `<tool_call>`), others plain text (runs of spaces).
        """

    def strips(self, token: int) -> tuple[bool, bool]:
        """Whether a token of either kind swallows the white space to its left, to its right."""

    def text(self, token: int) -> str:
        """The token's spelling in the vocabulary."""

    def tokenize(self, text: str, special: bool, edges: bool = False, most: int | None = None) -> list[int]:
        """Token ids of `text`. `special`: spellings of control tokens parse; `edges`: with BOS in front and
        EOS behind where the model adds them; `most`: stop soon behind so many ids, of which there are more
        then.

        LlmrunError INVALID_REQUEST where `text` is no valid Unicode.
        """

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        """The bytes of `tokens`, a control token's being its spelling; a character may be cut at the ends."""
