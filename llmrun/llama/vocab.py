"""A model's vocabulary: text to token ids and back. Valid as long as its model is open."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable, Sequence

from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.llama.library import lib
from llmrun.llama.windows import windows

# enum llama_token_attr in llama.h
_UNKNOWN, _CONTROL, _USER_DEFINED, _LSTRIP, _RSTRIP = 1 << 0, 1 << 3, 1 << 4, 1 << 7, 1 << 8


class Vocab:
    """Tokenises and detokenises. llama.cpp allows this from any thread."""

    def __init__(self, model: ctypes.c_void_p) -> None:
        self._vocab = lib.llama_model_get_vocab(model)
        self.size = int(lib.llama_vocab_n_tokens(self._vocab))
        self.bos = self._id(lib.llama_vocab_bos)
        self.eos = self._id(lib.llama_vocab_eos)
        self.add_bos = bool(lib.llama_vocab_get_add_bos(self._vocab))
        self.fim = self._fim()
        self.fim_repo = self._id(lib.llama_vocab_fim_rep)
        self.fim_file = self._id(lib.llama_vocab_fim_sep)
        self.kind = int(lib.llama_vocab_type(self._vocab))
        self._splits = self.kind == lib.LLAMA_VOCAB_TYPE_BPE
        self._pieces: dict[int, bytes] = {}

    def scan_tokens(self) -> None:
        """Find out now what needs all tokens (attributes, ends of a generation): tens of milliseconds that a
        first request would wait for. From any thread."""
        _ = self._attributes, self.eog_tokens

    @property
    def pointer(self) -> object:
        """The native vocabulary, for the other owners of this package."""
        return self._vocab

    def _id(self, get: Callable[[object], int]) -> int | None:
        token = get(self._vocab)
        return token if token >= 0 else None

    def _fim(self) -> tuple[int, int, int] | None:
        """The tokens in front of a prefix, a suffix and the middle to fill in."""
        found = map(self._id, (lib.llama_vocab_fim_pre, lib.llama_vocab_fim_suf, lib.llama_vocab_fim_mid))
        match [token for token in found if token is not None]:
            case [prefix, suffix, middle]:
                return prefix, suffix, middle
        return None

    def tokenize(self, text: str, special: bool, edges: bool = False, most: int | None = None) -> list[int]:
        """Token ids of `text`. `special`: spellings of control tokens parse; `edges`: with BOS in front and
        EOS behind where the model adds them; `most`: stop soon behind so many ids, of which there are more
        then."""
        if most is not None and len(text) > most:
            text = self._reaching(text, most)
        pieces = list(windows(text)) if self._splits else [text]
        if len(pieces) == 1:
            return self._tokenize(text, special, edges)
        front, behind = self.edges if edges else ([], [])
        ids = list(front)
        for piece in pieces:
            ids += self._tokenize(piece, special, edges=False)
            if most is not None and len(ids) > most:
                return ids
        return ids + behind

    def _reaching(self, text: str, most: int) -> str:
        """So much of `text` that it surely has more than `most` tokens, where it is longer than that.
        White space is not counted: some tokens swallow any amount of it."""
        wanted = (most + 1) * self._longest
        if len(text) <= wanted:
            return text
        space = len(text) - sum(map(len, text.split()))
        return text[: wanted + space]

    @functools.cached_property
    def _longest(self) -> int:
        """Bytes of the longest token."""
        return max(len(self._render(token, special=True)) for token in range(self.size))

    def _tokenize(self, text: str, special: bool, edges: bool) -> list[int]:
        try:
            raw = text.encode("utf-8")
        except UnicodeEncodeError as error:
            raise LlmrunError(
                INVALID_REQUEST,
                f"the text holds {text[error.start]!r}, half of a surrogate pair",
                hint="send valid Unicode",
            ) from None
        room = len(raw) + 8
        while True:
            ids = (ctypes.c_int32 * room)()
            count = lib.llama_tokenize(self._vocab, raw, len(raw), ids, room, edges, special)
            if count >= 0:
                return ids[:count]
            room = -count

    @functools.cached_property
    def edges(self) -> tuple[list[int], list[int]]:
        """The tokens that the model wants in front of a text, and behind it."""
        both = self.tokenize("", special=False, edges=True)
        front = int(len(both) > 1 or (self.add_bos and both == [self.bos]))
        return both[:front], both[front:]

    @functools.cached_property
    def pair_edges(self) -> tuple[list[int], list[int], list[int]]:
        """The tokens in front of the first of two texts, between them, and behind the second."""
        separator = self._id(lib.llama_vocab_sep)
        end = separator if self.eos is None else self.eos
        front = [self.bos] if self.add_bos and self.bos is not None else []
        behind = [end] if lib.llama_vocab_get_add_eos(self._vocab) and end is not None else []
        apart = [separator] if lib.llama_vocab_get_add_sep(self._vocab) and separator is not None else []
        return front, behind + apart, behind

    def piece(self, token: int) -> bytes:
        """The bytes of a token, which may hold part of a character; a control token's are empty."""
        piece = self._pieces.get(token)
        if piece is None:
            piece = self._pieces[token] = self._render(token, special=False)
        return piece

    def detokenize(self, tokens: Sequence[int], special: bool = True) -> bytes:
        """The bytes of `tokens`, with the spellings of control tokens where `special`."""
        return b"".join(self._render(token, special) for token in tokens)

    def _render(self, token: int, special: bool) -> bytes:
        room = 64
        while True:
            buffer = ctypes.create_string_buffer(room)
            count = lib.llama_token_to_piece(self._vocab, token, buffer, room, 0, special)
            if count >= 0:
                return buffer.raw[:count]
            room = -count

    def text(self, token: int) -> str:
        """A token's entry as the vocabulary spells it (control tokens read `<|im_end|>`)."""
        return bytes(lib.llama_vocab_get_text(self._vocab, token) or b"").decode("utf-8", "replace")

    def is_eog(self, token: int) -> bool:
        """Whether the token ends a generation."""
        return token in self.eog_tokens

    @functools.cached_property
    def eog_tokens(self) -> frozenset[int]:
        """Every token that ends a generation."""
        return frozenset(i for i in range(self.size) if lib.llama_vocab_is_eog(self._vocab, i))

    @functools.cached_property
    def suppressed(self) -> tuple[int, ...]:
        """Tokens that the model's file says must never be sampled."""
        count = ctypes.c_int32(0)
        tokens = lib.llama_vocab_get_suppress_tokens(self._vocab, ctypes.byref(count))
        return tuple(tokens[: count.value]) if tokens and count.value > 0 else ()

    @functools.cached_property
    def _attributes(self) -> dict[int, int]:
        """Attributes of the tokens that are more than text."""
        attributes = {i: int(lib.llama_vocab_get_attr(self._vocab, i)) for i in range(self.size)}
        special = _CONTROL | _UNKNOWN | _USER_DEFINED
        return {i: attribute for i, attribute in attributes.items() if attribute & special}

    def _spelled(self, mask: int) -> dict[str, int]:
        return {
            spelling: i
            for i, attribute in self._attributes.items()
            if attribute & mask and (spelling := self.text(i))
        }

    @functools.cached_property
    def _control(self) -> dict[str, int]:
        return self._spelled(_CONTROL | _UNKNOWN)

    def control_tokens(self) -> dict[str, int]:
        """Spelling -> id of every token that only a template may write, never a message. Read only."""
        return self._control

    def user_defined_tokens(self) -> dict[str, int]:
        """Spelling -> id of the tokens that llama.cpp finds in any text, special or not."""
        return self._spelled(_USER_DEFINED)

    def strips(self, token: int) -> tuple[bool, bool]:
        """Whether a token of either kind swallows the white space to its left, to its right."""
        attributes = self._attributes.get(token, 0)
        return bool(attributes & _LSTRIP), bool(attributes & _RSTRIP)
