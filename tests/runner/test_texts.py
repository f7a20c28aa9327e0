from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from llmrun.chat.vocab import Vocab
from llmrun.runner.texts import score_from
from llmrun.types import GenerateRequest


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
