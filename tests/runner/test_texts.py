from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from llmrun.chat.vocab import Vocab
from llmrun.runner.texts import score_from, seed_of
from llmrun.types import GenerateRequest, Options


@pytest.mark.parametrize(
    ("prompt", "ids", "wanted"),
    [
        ("Once", [1, 7], 1),
        ("<s>Once", [1, 7], 0),
        ("Once", [7], 0),
        ((1, 7), [1, 7], 0),
    ],
)
def test_scores_of_an_echoed_prompt_leave_out_a_bos_that_is_not_in_it(
    prompt: str | tuple[int, ...], ids: list[int], wanted: int
) -> None:
    vocab = cast(Vocab, SimpleNamespace(bos=1, text=lambda _: "<s>"))
    request = GenerateRequest(id="r", model="m", prompt=prompt, echo=True, logprobs=0)
    assert score_from(request, ids, vocab) == wanted
    assert score_from(msgspec.structs.replace(request, echo=False), ids, vocab) is None
    assert score_from(msgspec.structs.replace(request, logprobs=None), ids, vocab) is None


def test_seed_is_the_requests_own_or_a_fresh_one() -> None:
    assert seed_of(Options(seed=7)) == (7, True)
    assert seed_of(Options(seed=2**40 + 7)) == (7, True)
    for fresh in (Options(), Options(seed=-1)):
        assert not seed_of(fresh)[1]
        assert len({seed_of(fresh)[0] for _ in range(5)}) > 1
