"""A vocabulary as llguidance needs it: each token's bytes, and which tokens are no text."""

from __future__ import annotations

import ctypes

from llguidance import LLTokenizer

from llmrun.llama.library import lib
from llmrun.llama.vocab import Vocab

# What llguidance's tries take for a token that no text may produce
_SPECIAL = b"\xff"


def guide_tokenizer(vocab: Vocab) -> LLTokenizer:
    """The tokenizer that grammars of this model are compiled for; it is valid while the model is open.

    Takes 0.2 s for 50,000 tokens and belongs on a thread that nobody waits for. llguidance calls
    `llama_tokenize` itself, so that forced text becomes the tokens that the model knows it by. Made by
    the same call as llguidance's own bridge (`llguidance.llamacpp`), which would let a grammar write
    the unknown token as text.
    """
    no_text = set(vocab.control_tokens().values()) | vocab.eog_tokens
    tokens = [
        _SPECIAL + vocab.text(token).encode() if token in no_text else vocab.piece(token)
        for token in range(vocab.size)
    ]
    tokenizer: LLTokenizer = LLTokenizer.from_llamacpp(  # type: ignore[attr-defined]  # its stub lacks it
        tokens=tokens,
        vocab_ptr=vocab.pointer,
        tokenize_fptr=ctypes.cast(lib._lib.llama_tokenize, ctypes.c_void_p).value,
        eos_token=sorted(vocab.eog_tokens),
        slices=None,
    )
    return tokenizer
