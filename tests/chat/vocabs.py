"""Vocabularies to test with: a small one in Python, and real ones through llama.cpp."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FIRST_CHARACTER = 10_000
ENV = "LLMRUN_TEST_VOCABS"  # a folder of GGUF files, whole models or vocabularies only


@dataclass
class CharVocab:
    """One token a character, and some longer ones; parts a text as llama.cpp's source says it does.

    control, user   spelling -> id, of tokens that parse when asked to, and always
    merges          spelling -> id of what plain text merges into, may name a control token
    strips_of       id -> (left, right)
    space_prefix    plain text behind a special token, or at the start, gets a space in front
    """

    control: Mapping[str, int]
    user: Mapping[str, int] = field(default_factory=dict)
    merges: Mapping[str, int] = field(default_factory=dict)
    strips_of: Mapping[int, tuple[bool, bool]] = field(default_factory=dict)
    space_prefix: bool = False
    bos: int | None = None
    eos: int | None = None
    add_bos: bool = False
    fim: tuple[int, int, int] | None = None
    fim_repo: int | None = None
    fim_file: int | None = None
    size: int = FIRST_CHARACTER + 0x110000

    def control_tokens(self) -> Mapping[str, int]:
        return self.control

    def user_defined_tokens(self) -> Mapping[str, int]:
        return self.user

    def strips(self, token: int) -> tuple[bool, bool]:
        return self.strips_of.get(token, (False, False))

    def text(self, token: int) -> str:
        return next(spelling for spelling, i in {**self.control, **self.user}.items() if i == token)

    def tokenize(self, text: str, special: bool, edges: bool = False, most: int | None = None) -> list[int]:
        if most is not None:
            text = text[: (most + 1) * max(map(len, [*self.merges, *self.control, *self.user, "x"]))]
        if edges and self.add_bos and self.bos is not None:
            return [self.bos, *self.tokenize(text, special)]
        fragments: list[str | int] = [text] if text else []
        known = {**self.user, **(self.control if special else {})}
        for spelling in sorted(known, key=len, reverse=True):
            fragments = [
                piece
                for fragment in fragments
                for piece in (
                    self._parted(fragment, spelling, known[spelling])
                    if isinstance(fragment, str)
                    else [fragment]
                )
            ]
        ids: list[int] = []
        behind_special = True
        for fragment in fragments:
            if isinstance(fragment, str):
                ids += self._merged(" " * (self.space_prefix and behind_special) + fragment)
            else:
                ids.append(fragment)
            behind_special = not isinstance(fragment, str)
        return ids

    def _parted(self, text: str, spelling: str, token: int) -> list[str | int]:
        left, right = self.strips(token)
        pieces: list[str | int] = []
        while (at := text.find(spelling)) >= 0:
            before, text = text[:at], text[at + len(spelling) :]
            pieces += [before.rstrip(" \t\n\v\f\r") if left else before, token]
            text = text.lstrip(" \t\n\v\f\r") if right else text
        return [piece for piece in [*pieces, text] if piece != ""]

    def _merged(self, text: str) -> list[int]:
        ids = []
        while text:
            spelling = next((s for s in self.merges if text.startswith(s)), text[0])
            ids.append(self.merges.get(spelling, FIRST_CHARACTER + ord(spelling[0])))
            text = text[len(spelling) :]
        return ids

    def detokenize(self, tokens: Sequence[int]) -> bytes:
        return self.read(tokens).encode()

    def read(self, ids: Sequence[int]) -> str:
        """The text of `ids`."""
        spellings = {i: s for s, i in {**self.control, **self.user, **self.merges}.items()}
        return "".join(spellings.get(i) or chr(i - FIRST_CHARACTER) for i in ids)


def real_vocab_files() -> list[Path]:
    """The GGUF files that the environment points to."""
    folder = os.environ.get(ENV)
    return sorted(Path(folder).glob("*.gguf")) if folder else []


@contextmanager
def native_vocab(path: Path) -> Iterator[Any]:
    """A GGUF's vocabulary, by llama.cpp; no weights are read."""
    from llmrun.llama.library import lib
    from llmrun.llama.vocab import Vocab

    params = lib.llama_model_default_params()
    params.vocab_only = True
    model = lib.llama_model_load_from_file(str(path).encode(), params)
    assert model, path
    try:
        yield Vocab(model)
    finally:
        lib.llama_model_free(model)


def write_spm_vocab(path: Path) -> Path:
    """A vocabulary of the kind of Llama 2: bytes, a space in front, and merges that spell `</s>`.

    With parse_special=false llama.cpp still makes its control token of `</s>`, and `<tool>` always parses.
    """
    import gguf

    kinds = gguf.TokenType
    tokens = [("<unk>", kinds.UNKNOWN), ("<s>", kinds.CONTROL), ("</s>", kinds.CONTROL)]
    tokens += [(f"<0x{byte:02X}>", kinds.BYTE) for byte in range(256)]
    tokens += [(text, kinds.NORMAL) for text in ("▁", "</", "s>", "▁a", "he")]
    tokens += [("<tool>", kinds.USER_DEFINED), ("▁▁", kinds.USER_DEFINED)]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("llama")
    writer.add_token_list([text for text, _ in tokens])
    writer.add_token_types([kind for _, kind in tokens])
    writer.add_token_scores([-float(i) for i in range(len(tokens))])
    writer.add_unk_token_id(0)
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(True)
    writer.add_add_space_prefix(True)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def write_bpe_vocab(path: Path, splitter: str) -> Path:
    """A vocabulary of the kind of GPT-2, of bytes and `the`; `splitter` names how it parts words."""
    import gguf

    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in printable]
    spelt = {byte: chr(byte) for byte in printable} | {byte: chr(256 + i) for i, byte in enumerate(others)}
    tokens = [spelt[byte] for byte in range(256)] + ["th", "the", "<|end|>"]
    writer = gguf.GGUFWriter(path, "llama")
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(splitter)
    writer.add_token_list(tokens)
    writer.add_token_types([gguf.TokenType.NORMAL] * 258 + [gguf.TokenType.CONTROL])
    writer.add_token_merges(["t h", "th e"])
    writer.add_eos_token_id(258)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path
