from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from llmrun.engine.request import Shift
from llmrun.runner.overflow import (
    answer_limit,
    answer_room,
    shorter_conversations,
    shortest_cut,
    without_middle,
    without_oldest,
)
from llmrun.types import GenerateRequest, Message


def talk(*roles: str) -> tuple[Message, ...]:
    return tuple(Message(role=role, content=str(at)) for at, role in enumerate(roles))  # type: ignore[arg-type]


def contents(messages: tuple[Message, ...]) -> str:
    return "".join(message.content for message in messages)


def test_answer_limit_says_whether_it_is_what_was_wanted_or_the_room_there_is() -> None:
    assert answer_limit(9, 20, None) == (9, "tokens")
    assert answer_limit(20, 20, None) == (20, "tokens")
    assert answer_limit(21, 20, None) == (20, "context")
    assert answer_limit(None, 20, None) == (20, "context")
    assert answer_limit(21, 20, Shift(30, 2)) == (21, "tokens")  # it goes on where the context is full


def test_without_middle_keeps_both_ends() -> None:
    assert without_middle(range(10), 5) == [0, 1, 2, 8, 9]
    assert without_middle(range(10), 1) == [0]


def test_without_oldest_keeps_the_beginning_and_the_newest() -> None:
    assert without_oldest(range(10), 6, keep=2) == [0, 1, 6, 7, 8, 9]
    assert without_oldest(range(10), 6, keep=9) == [0, 1, 2, 7, 8, 9]
    assert without_oldest(range(10), 4, keep=0) == [6, 7, 8, 9]


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 60))
def test_shortened_prompts_have_exactly_as_many_tokens_as_may_be(count: int, most: int, keep: int) -> None:
    if count > most:
        for shorter in (without_middle(range(count), most), without_oldest(range(count), most, keep)):
            assert len(shorter) == most
            assert shorter == sorted(set(shorter))


def test_answer_room_is_what_the_answer_may_take_up_to_a_quarter() -> None:
    assert answer_room(10, 1000) == 10
    assert answer_room(900, 1000) == answer_room(None, 1000) == 250
    assert answer_room(None, 2) == 1


def test_shorter_conversations_begin_with_a_user_and_keep_the_system_prompt() -> None:
    messages = talk("system", "user", "assistant", "user", "assistant", "tool", "assistant", "user")
    assert [contents(each) for each in shorter_conversations(messages)] == ["034567", "07"]
    assert shorter_conversations(talk("user")) == []


def test_shortest_cut_leaves_out_no_more_turns_than_it_must() -> None:
    messages = talk("system", *["user", "assistant"] * 4, "user")
    request = GenerateRequest(id="1", model="m", messages=messages)

    def encode(asked: GenerateRequest) -> list[int]:
        return [int(message.content) for message in asked.messages or ()]

    assert shortest_cut(request, encode, 6) == [0, 5, 6, 7, 8, 9]
    assert shortest_cut(request, encode, 5) == [0, 7, 8, 9]
    assert shortest_cut(request, encode, 1) is None
