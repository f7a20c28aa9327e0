"""The control tokens of a vocabulary: how they are spelt, where they stand in a text.

In: a vocabulary and what a template itself writes. Out: the table that says which spellings only that
template may turn into tokens. It does not know messages; `llmrun.chat.mark` keeps those apart.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from llmrun.chat.vocab import Vocab

_MARKER_SHAPE = re.compile(r"<[|｜].+>|<.+[|｜]>", re.DOTALL)


def _is_markup(spelling: str, written: str) -> bool:
    """Whether a user-defined token is markup: it looks so, or it is a bracketed word the template writes."""
    if _MARKER_SHAPE.fullmatch(spelling):
        return True
    bracketed = not (spelling[0].isalnum() or spelling[0].isspace() or spelling[-1].isspace())
    return bracketed and spelling in written


def _tails(spellings: Iterable[str], literals: Iterable[str]) -> tuple[str, ...]:
    """What would complete a control token right behind some literal of the template.

    A template that writes `'<|' + name + '|>'` makes a control token out of a fitting `name`.
    """
    pieces = {literal for literal in literals if literal}
    last = {piece[-1] for piece in pieces}
    ends = {piece[i:] for piece in pieces for i in range(max(0, len(piece) - 64), len(piece))}

    def can_end_in(head: str) -> bool:
        return head in ends or any(head[i:] in pieces for i in range(1, len(head)))

    return tuple(
        {
            spelling[cut:]
            for spelling in spellings
            for cut in range(1, len(spelling))
            if spelling[cut - 1] in last and can_end_in(spelling[:cut])
        }
    )


class ControlTokens:
    """Spelling -> id of the tokens that steer the model, and the search for them. Immutable.

    They are the CONTROL and UNKNOWN tokens, and the user-defined ones that are markup for the template
    with these `literals`. A token of one character, or of white space, is text and left out.

    tokens  their ids
    reach   length of the longest spelling
    leads   the first visible character of each spelling: none begins where none of these stands
    tails   ends of spellings that could follow a literal of the template (see `_tails`)
    """

    def __init__(self, vocab: Vocab, literals: Iterable[str] = ()) -> None:
        literals = tuple(literals)
        written = "\0".join(literals)
        tokens = dict(vocab.control_tokens())
        tokens.update(
            (spelling, token)
            for spelling, token in vocab.user_defined_tokens().items()
            if spelling and _is_markup(spelling, written)
        )
        self.ids = {spelling: token for spelling, token in tokens.items() if len(spelling.lstrip()) > 1}
        self.tokens = frozenset(self.ids.values())
        self.reach = max(map(len, self.ids), default=0)
        self.leads = frozenset(spelling.lstrip()[0] for spelling in self.ids)
        self.tails = _tails(self.ids, literals)
        lengths: dict[str, set[int]] = {}
        for spelling in self.ids:
            lengths.setdefault(spelling[0], set()).add(len(spelling))
        self._lengths = {first: sorted(sizes, reverse=True) for first, sizes in lengths.items()}
        self._first = re.compile(f"[{re.escape(''.join(lengths))}]") if lengths else re.compile(r"(?!)")

    def at(self, text: str, start: int) -> str | None:
        """The longest spelling that stands at `start`."""
        for length in self._lengths.get(text[start : start + 1], ()):
            if (spelling := text[start : start + length]) in self.ids:
                return spelling
        return None

    def find(self, text: str) -> Iterator[tuple[int, str]]:
        """Where spellings stand in `text`, left to right, none inside another."""
        end = 0
        for match in self._first.finditer(text):
            start = match.start()
            if start >= end and (spelling := self.at(text, start)):
                end = start + len(spelling)
                yield start, spelling
