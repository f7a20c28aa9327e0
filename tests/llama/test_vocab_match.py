from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import pytest

from llmrun.llama.vocab import Vocab
from llmrun.llama.vocab_match import mismatch


@dataclass(frozen=True)
class Known:
    """What a vocabulary is asked, without a model."""

    kind: int = 2
    add_bos: bool = True
    bos: int | None = 1
    size: int = 400
    changed: tuple[int, str] = (-1, "")

    def text(self, token: int) -> str:
        return self.changed[1] if token == self.changed[0] else f"t{token}"


def _mismatch(draft: Known) -> str | None:
    return mismatch(cast(Vocab, Known()), cast(Vocab, draft))


@pytest.mark.parametrize(
    "draft",
    [Known(), Known(size=528), Known(size=272), Known(changed=(4, "x"))],
)
def test_mismatch_of_vocabularies_that_agree_is_none(draft: Known) -> None:
    assert _mismatch(draft) is None


@pytest.mark.parametrize(
    ("draft", "said"),
    [
        (Known(kind=1), "different kinds"),
        (Known(add_bos=False), "begin a text"),
        (Known(bos=3), "begin a text"),
        (Known(size=529), "400 tokens, the other 529"),
        (Known(changed=(5, "x")), "token 5 is 't5' for one, 'x' for the other"),
        (Known(changed=(399, "x")), "token 399"),
    ],
)
def test_mismatch_names_what_differs(draft: Known, said: str) -> None:
    assert said in str(_mismatch(draft))
