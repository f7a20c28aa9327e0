"""Comparing texts that a template wrote, by whole tags and words, so that no marker is cut in the middle."""

from __future__ import annotations

import itertools
import re

_ATOM = re.compile(
    r"<\|(?:open|close)\|>[^<>\n]*<\|sep\|>|<[^<>\n]*>|\[/?[A-Z][A-Z_ ]*\]|[^\W\d]+|\d+|\s|.", re.DOTALL
)
_TAG = re.compile(r"<\|(?:open|close)\|>[^<>\n]*<\|sep\|>|<[^<>\s][^<>\n]*>|\[/?[A-Z][A-Z_ ]*\]")


def atoms(text: str) -> list[str]:
    """`text` in pieces: tags, words, numbers, and single characters."""
    return _ATOM.findall(text)


def common_start(*texts: str) -> str:
    """The longest text of whole atoms that all begin with."""
    return "".join(_shared([atoms(text) for text in texts]))


def common_end(*texts: str) -> str:
    """The longest text of whole atoms that all end with."""
    return "".join(reversed(_shared([atoms(text)[::-1] for text in texts])))


def _shared(rows: list[list[str]]) -> list[str]:
    """What all rows begin with."""
    same = itertools.takewhile(lambda column: len(set(column)) == 1, zip(*rows, strict=False))
    return [column[0] for column in same]


def special_tags(text: str) -> list[str]:
    """The tags in `text` that look like tokens of their own, such as `<|end|>`, `<channel|>` or `[ARGS]`:
    nobody writes them in prose, as one may write `<think>`."""
    return [tag for tag in _TAG.findall(text) if tag.startswith("[") or "|" in tag or "｜" in tag]


def first_tag(text: str) -> str:
    """`text` up to the end of its first tag; all of it where there is none."""
    match = _TAG.search(text)
    return text[: match.end()] if match else text.rstrip()


def counted_end(earlier: str, later: str) -> list[tuple[str, str]]:
    """The longest end that both texts have, atom by atom, where a number in `later` may be one more than in
    `earlier`: pairs of atoms."""
    pairs: list[tuple[str, str]] = []
    for one, two in zip(reversed(atoms(earlier)), reversed(atoms(later)), strict=False):
        if one != two and not (one in ("0", "1") and two == str(int(one) + 1)):
            break
        pairs.append((one, two))
    return pairs[::-1]
