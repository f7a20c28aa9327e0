from __future__ import annotations

from llmrun.cli.repl.conversation import Conversation
from llmrun.types import Message, Options


def test_asking_sends_system_turns_and_question_and_records_nothing() -> None:
    talk = Conversation("m", system="S")
    talk.record("q1", "a1")
    assert talk.asking("q2") == talk.asking("q2")
    assert [(m.role, m.content) for m in talk.asking("q2")] == [
        ("system", "S"),
        ("user", "q1"),
        ("assistant", "a1"),
        ("user", "q2"),
    ]


def test_record_without_an_answer_keeps_the_question_out_of_what_is_sent() -> None:
    talk = Conversation("m")
    talk.record("q", "")
    assert talk.asking("x") == [Message(role="user", content="x")]
    assert talk.unanswered == "q"
    talk.record("q", "a", "because")
    assert talk.unanswered is None
    assert talk.turns[1] == Message(role="assistant", content="a", reasoning="because")


def test_take_back_forgets_the_unanswered_question_first_and_then_whole_turns() -> None:
    talk = Conversation("m")
    talk.record("q1", "a1")
    talk.record("q2", "")
    assert [talk.take_back() for _ in range(3)] == ["q2", "q1", None]
    assert talk.turns == []


def test_clear_keeps_what_is_set() -> None:
    talk = Conversation("m", system="S", options=Options(seed=1))
    talk.record("q", "a")
    talk.clear()
    assert (talk.turns, talk.system, talk.options) == ([], "S", Options(seed=1))


def test_set_and_unset_options() -> None:
    talk = Conversation("m", options=Options(seed=1, stop=("a",)))
    talk.set(Options(top_k=3, stop=("b",)))
    assert talk.options == Options(seed=1, top_k=3, stop=("a", "b"))
    talk.unset("stop")
    talk.unset("seed")
    assert talk.options == Options(top_k=3)
