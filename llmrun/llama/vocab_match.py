"""Whether two models mean the same by their token ids, so that one may guess for the other.

The rule is llama.cpp's (common/speculative.cpp): the same kind of vocabulary, the same token in front, sizes
that differ by padding at most, and the same spelling of every id but the first few, which are control tokens.
"""

from __future__ import annotations

from llmrun.llama.vocab import Vocab

_PADDING = 128
_FIRST_COMPARED = 5


def mismatch(target: Vocab, draft: Vocab) -> str | None:
    """What tells the vocabularies apart; None where nothing does."""
    if target.kind != draft.kind:
        return "their tokenizers are of different kinds"
    edges = (target.add_bos, target.bos if target.add_bos else None)
    if edges != (draft.add_bos, draft.bos if draft.add_bos else None):
        return "they begin a text with different tokens"
    if abs(target.size - draft.size) > _PADDING:
        return f"one has {target.size} tokens, the other {draft.size}"
    for token in range(_FIRST_COMPARED, min(target.size, draft.size)):
        if (ours := target.text(token)) != (theirs := draft.text(token)):
            return f"token {token} is {ours!r} for one, {theirs!r} for the other"
    return None
