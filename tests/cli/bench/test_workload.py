from __future__ import annotations

from llmrun.cli.bench.workload import Prompts, text


def test_prompts_have_the_length_and_begin_at_other_places() -> None:
    prompts = Prompts(range(1000))
    taken = [prompts.take(length) for length in (5, 1200, 5, 5)]
    assert [len(prompt) for prompt in taken] == [5, 1200, 5, 5]
    assert len({prompt[0] for prompt in taken}) == 4
    assert taken[1][:3] == [37, 38, 39]
    assert taken[1][962:965] == [999, 0, 1]


def test_text_is_there_and_long_enough_to_compare_models_on() -> None:
    assert len(text().split()) > 800
