"""A rendered prompt, marked, to token ids.

Where the template wrote a control token, its id; between them plain text, in which no spelling parses.
Without hostile text the ids are those of `llama_tokenize(parse_special=true)` over the same prompt,
because the text is cut where llama.cpp cuts it (`tokenizer_st_partition` in its llama-vocab.cpp).
"""

from __future__ import annotations

from llmrun.chat.control import ControlTokens
from llmrun.chat.mark import Mark
from llmrun.chat.vocab import Vocab

_C_SPACE = " \t\n\v\f\r"  # isspace() of the C locale, which llama.cpp strips by


def encode_marked(
    text: str, mark: Mark, control: ControlTokens, vocab: Vocab, most: int | None = None
) -> list[int]:
    """Ids of `text`, as a template rendered it from variables under `mark`. No BOS or EOS is added.

    most  stop soon behind so many ids, of which there are more then
    """
    ids: list[int] = []
    end, swallows = 0, False
    for start, spelling in control.find(text):
        token = control.ids[spelling]
        left, right = vocab.strips(token)
        ids += _plain(_stripped(text[end:start], swallows, left), mark, control, vocab, most)
        ids.append(token)
        if most is not None and len(ids) > most:
            return ids
        end, swallows = start + len(spelling), right
    return ids + _plain(_stripped(text[end:], swallows, False), mark, control, vocab, most)


def _stripped(text: str, left: bool, right: bool) -> str:
    text = text.lstrip(_C_SPACE) if left else text
    return text.rstrip(_C_SPACE) if right else text


def _plain(text: str, mark: Mark, control: ControlTokens, vocab: Vocab, most: int | None) -> list[int]:
    """Ids of text between control tokens; none of them is a control token.

    `tokenize` alone does not promise that: user-defined tokens parse in any text, and merges can end in
    a control token (Qwen2 spells `</s>` so). Then the spellings are cut open and tokenised in two.
    """
    clean = mark.clean(text)
    if not clean:
        return []
    ids = vocab.tokenize(clean, special=False, most=most)
    if control.tokens.isdisjoint(ids) or (most is not None and len(ids) > most):
        return ids
    first, *others = _cut(text, mark, control)
    ids = vocab.tokenize(first, special=False)
    for piece in others:
        ids += continued(piece, vocab)
    return ids


def _cut(text: str, mark: Mark, control: ControlTokens) -> list[str]:
    """The clean text in pieces, each mark that breaks a control token's spelling being a border."""
    pieces = [""]
    whole = mark.clean(text)
    at = 0
    for part in text.split(mark.sign):
        pieces[-1] += part
        at += len(part)
        if _breaks_spelling(whole, at, control):
            pieces.append("")
    return [piece for piece in pieces if piece] or [""]


def _breaks_spelling(whole: str, at: int, control: ControlTokens) -> bool:
    """Whether a spelling reaches across `at`, where a mark stood."""
    return any(
        (spelling := control.at(whole, start)) is not None and start + len(spelling) > at
        for start in range(max(0, at - control.reach), at)
    )


def continued(text: str, vocab: Vocab, special: bool = False) -> list[int]:
    """Ids of text that goes on after other text: without the space that some vocabularies put in front.

    special  whether spellings of control tokens parse
    """
    before = vocab.tokenize("\n", special=False)
    ids = vocab.tokenize("\n" + text, special=special)
    if ids[: len(before)] == before:
        return ids[len(before) :]
    return vocab.tokenize(text, special=special)
