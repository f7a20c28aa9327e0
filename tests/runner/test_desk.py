from __future__ import annotations

import time
from types import SimpleNamespace
from typing import cast

from llmrun.chat.prompt import Prompt
from llmrun.errors import CANCELLED
from llmrun.runner.answers import Answers
from llmrun.runner.desk import Desk
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
