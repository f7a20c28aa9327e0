from __future__ import annotations

from datetime import datetime
from pathlib import Path

import pytest

from llmrun.cli.repl.conversation import Conversation
from llmrun.cli.repl.sessions import Sessions
from llmrun.errors import BAD_FILE, CONFLICT, LlmrunError

NOW = datetime(2026, 11, 30, 2, 42)


def talk(*questions: str) -> Conversation:
    made = Conversation("m")
    for question in questions:
        made.record(question, "a")
    return made


def test_all_lists_the_newest_first_and_leaves_out_what_is_none(tmp_path: Path) -> None:
    sessions = Sessions(tmp_path)
    assert sessions.all() == []
    sessions.save("one", talk("first\nwords", "more"))
    sessions.save("two", talk())
    (tmp_path / "broken.json").write_text("{")
    (tmp_path / "one.json").touch()
    assert [(listed.name, listed.answers, listed.title) for listed in sessions.all()] == [
        ("one", 2, "first words"),
        ("two", 0, ""),
    ]


def test_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = Sessions(tmp_path / "chats").save("one", talk("q"))
    assert path.stat().st_mode & 0o077 == 0


def test_session_open_in_another_chat_is_refused_until_that_lets_go(tmp_path: Path) -> None:
    one, other = Sessions(tmp_path), Sessions(tmp_path)
    one.hold("x")
    with pytest.raises(LlmrunError, match="open in another chat") as caught:
        other.hold("x")
    assert caught.value.kind is CONFLICT
    one.hold("y")  # goes on with another
    other.hold("x")


def test_new_name_is_no_other_sessions(tmp_path: Path) -> None:
    sessions, other = Sessions(tmp_path), Sessions(tmp_path)
    assert sessions.new_name(NOW) == "2026-11-30-0242"
    sessions.save("2026-11-30-0242", talk())
    other.hold("2026-11-30-0242-2")  # begun, nothing said yet
    assert sessions.new_name(NOW) == "2026-11-30-0242-3"


@pytest.mark.parametrize("name", ["", "..", "a/b", ".hidden", "x" * 65, "a b"])
def test_name_that_could_lead_elsewhere_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(LlmrunError, match="no name for a session"):
        Sessions(tmp_path).save(name, talk())


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ("{", "is no saved chat"),
        ('{"version": 2, "model": "m"}', "of version 2"),
        ('{"version": 1, "model": "m", "turns": [{"role": "assistant", "content": "a"}]}', "in turn"),
    ],
)
def test_damaged_session_is_named(tmp_path: Path, data: str, says: str) -> None:
    (tmp_path / "x.json").write_text(data)
    with pytest.raises(LlmrunError, match=says) as caught:
        Sessions(tmp_path).load("x")
    assert caught.value.kind is BAD_FILE
