from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from llmrun.chat.prompt import Prompt
from llmrun.chat.vocab import Vocab
from llmrun.errors import CANCELLED
from llmrun.runner.answers import Answers
from llmrun.runner.desk import Desk, score_from
from llmrun.runner.loading import Loaded
from llmrun.types import Event, Failed, GenerateRequest


class Prompts:
    """Stands for a prompter: notes what it was asked for; `midway` runs in the middle of it."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.midway = lambda: None

    def prompt(self, request: GenerateRequest) -> Prompt:
        self.asked.append(request.id)
        self.midway()
        return Prompt([1])


def desk_of(prompts: Prompts) -> tuple[Desk, list[tuple[str, Event]]]:
    said: list[tuple[str, Event]] = []
    model = SimpleNamespace(vocab=SimpleNamespace(size=9, detokenize=bytes))
    loaded = SimpleNamespace(model=model, info=SimpleNamespace(ctx=64), prompter=prompts, grammars=None)
    desk = Desk(
        cast(Loaded, loaded), Answers(), lambda name, event: said.append((name, event)), time.monotonic
    )
    return desk, said


def test_request_cancelled_in_the_queue_is_not_prepared() -> None:
    prompts = Prompts()
    desk, said = desk_of(prompts)
    desk.expect("r")
    desk.cancel("r")
    desk.prepare(GenerateRequest(id="r", model="m", prompt="x"))
    ((name, event),) = said
    assert isinstance(event, Failed)
    assert (name, event.error.code, prompts.asked) == ("r", CANCELLED.code, [])


def test_request_cancelled_while_prepared_leaves_no_echo_behind() -> None:
    prompts = Prompts()
    desk, said = desk_of(prompts)
    desk.expect("r")
    prompts.midway = lambda: desk.cancel("r")
    desk.prepare(GenerateRequest(id="r", model="m", prompt="x", echo=True))
    assert [type(event) for _, event in said] == [Failed]
    assert desk._answers._echoes == {}


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
