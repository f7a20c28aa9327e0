from __future__ import annotations

import io
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from llmrun.cli.output import Output
from llmrun.cli.repl import slash
from llmrun.cli.repl.chatting import Bye, Chat
from llmrun.cli.repl.conversation import Conversation
from llmrun.cli.repl.sessions import Sessions
from llmrun.client.client import Client
from llmrun.errors import UNSUPPORTED_FIELD, USAGE, LlmrunError
from llmrun.types import Options


def chat_of(talk: Conversation | None = None, folder: Path = Path("/nowhere")) -> tuple[Chat, io.StringIO]:
    """A chat that nobody is connected to, and what it prints as results."""
    out = io.StringIO()
    output = Output(out, io.StringIO())
    return Chat(talk or Conversation("m"), output, Sessions(folder), _nobody, str, lambda _: None), out


def _nobody() -> AbstractContextManager[Client]:
    raise AssertionError("this needs no daemon")


def do(line: str, talk: Conversation | None = None) -> tuple[Conversation, str]:
    """What a line does, and what it prints as a result."""
    chat, out = chat_of(talk)
    type_into(chat, line)
    return chat.conversation, out.getvalue()


def type_into(chat: Chat, line: str) -> None:
    command = slash.parse(line)
    assert command is not None
    slash.execute(chat, *command)


@pytest.mark.parametrize("text", ["hello", "/etc/passwd holds what?", "/ what", "a /help", "/usr", "/Set"])
def test_parse_message_or_path_is_no_command(text: str) -> None:
    command = slash.parse(text)
    assert command is None or command == ("usr", "")


@pytest.mark.parametrize(
    ("text", "command"),
    [
        ("/help", ("help", "")),
        ("/?", ("?", "")),
        (" /set a  b ", ("set", "a  b")),
        ("/system a\nb", ("system", "a\nb")),
    ],
)
def test_parse_command_and_argument(text: str, command: tuple[str, str]) -> None:
    assert slash.parse(text) == command


def test_help_names_every_command() -> None:
    _, shown = do("/help")
    assert all(f"{command.usage} " in shown for command in slash.COMMANDS.values())


def test_ollamas_spellings_are_understood() -> None:
    assert do("/?")[1] == do("/help")[1]
    with pytest.raises(Bye):
        do("/exit")


def test_set_shows_sets_and_resets() -> None:
    talk, shown = do("/set top-k 7")
    assert (talk.options, shown) == (Options(top_k=7), "top_k  7\n")
    assert do("/set top_k", talk)[1] == "top_k  7\n"
    assert "temperature            model's own" in do("/set", talk)[1]
    do("/set top_k default", talk)
    assert talk.options == Options()


def test_system_sets_and_shows() -> None:
    talk, _ = do('/system "Be brief."')
    assert talk.system == "Be brief."
    assert do("/system", talk)[1] == "Be brief.\n"


def test_clear_and_bye() -> None:
    talk = Conversation("m")
    talk.record("q", "a")
    do("/clear", talk)
    assert talk.turns == []
    with pytest.raises(Bye):
        do("/bye")


def test_show_tells_model_and_turns() -> None:
    talk = Conversation("tiny:1m")
    talk.record("q", "a")
    shown = do("/show", talk)[1]
    assert "tiny:1m" in shown
    assert "turns                  1\n" in shown


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("/sett x", "did you mean /set?"),
        ("/zzz", "see: /help"),
        ("/set tempratur 1", "did you mean 'temperature'"),
    ],
)
def test_wrong_command_is_refused_with_the_nearest(line: str, says: str) -> None:
    with pytest.raises(LlmrunError) as caught:
        do(line)
    assert caught.value.kind is USAGE
    assert says in str(caught.value)


def test_set_lists_every_option_with_its_value() -> None:
    shown = do("/set", Conversation("m", options=Options(top_k=7)))[1]
    lines = dict(line.split(maxsplit=1) for line in shown.splitlines())
    assert list(lines) == [*Options.__struct_fields__]
    assert (lines["top_k"], lines["mirostat"]) == ("7", "model's own")


def test_set_tells_the_value_in_force_and_whose_it_is() -> None:
    chat, out = chat_of(Conversation("m", options=Options(top_k=7)))
    chat.defaults = lambda _: Options(top_k=1, temperature=0.2, stop=("<end>",))
    type_into(chat, "/set")
    lines = dict(line.split(maxsplit=1) for line in out.getvalue().splitlines())
    assert {name: lines[name] for name in ("top_k", "temperature", "stop", "min_p", "max_tokens")} == {
        "top_k": "7",
        "temperature": "0.2 (the model's)",
        "stop": "'<end>' (the model's)",
        "min_p": "0.05 (default)",
        "max_tokens": "not set",
    }


def test_retry_undo_and_edit_take_the_last_question_back() -> None:
    chat, _ = chat_of()
    for question in ("q1", "q2", "q3", "q4"):
        chat.conversation.record(question, "a")
    type_into(chat, "/retry")
    assert chat.ask == "q4"
    type_into(chat, "/edit")
    assert chat.draft == "q3"
    type_into(chat, "/edit in other words")
    assert chat.ask == "in other words"
    type_into(chat, "/undo")
    assert chat.conversation.turns == []
    with pytest.raises(LlmrunError, match="nothing has been asked"):
        type_into(chat, "/retry")


def test_think_sets_and_shows() -> None:
    chat, _ = chat_of()
    for word, value in (("on", True), ("off", False), ("default", None)):
        type_into(chat, f"/think {word}")
        assert chat.conversation.think is value
    type_into(chat, "/think hide")
    assert not chat.thoughts
    with pytest.raises(LlmrunError, match="say on, off"):
        type_into(chat, "/think hard")


def test_file_is_attached_also_with_spaces_and_one_that_is_not_there_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("one")
    (tmp_path / "c.txt").write_text("two")
    chat, _ = chat_of()
    type_into(chat, f"/file {tmp_path}/a b.txt")
    type_into(chat, f"/file '{tmp_path}/a b.txt' {tmp_path}/c.txt")
    assert chat.conversation.attached == ["one", "one", "two"]
    with pytest.raises(LlmrunError, match="No such file"):
        type_into(chat, "/file nothing.txt")


def test_image_is_refused_by_name() -> None:
    with pytest.raises(
        LlmrunError, match=r"^/image: images cannot be read yet, for no model that sees"
    ) as caught:
        do("/image cat.png")
    assert caught.value.kind is UNSUPPORTED_FIELD


def test_save_load_and_export_bring_back_what_was_said(tmp_path: Path) -> None:
    talk = Conversation("m", system="S", options=Options(seed=3, stop=("x",)), think=False)
    talk.record("q", "**a**", "hm\nso")
    talk.record("q2", "")
    chat, _ = chat_of(talk, tmp_path / "chats")
    type_into(chat, "/save mine")
    type_into(chat, f"/export {tmp_path}/out.json")
    type_into(chat, f"/export {tmp_path}/out.md")
    chat.sessions.let_go()
    for source in ("mine", f"{tmp_path}/out.json"):
        again, _ = chat_of(folder=tmp_path / "chats")
        type_into(again, f"/load {source}")
        assert again.conversation == talk
        again.sessions.let_go()
    written = (tmp_path / "out.md").read_text()
    parts = [
        "# Chat with m",
        "**System prompt:** S",
        "## You",
        "q",
        "## m",
        "> hm\n> so",
        "**a**",
        "## You",
        "q2",
    ]
    assert written == "\n\n".join(parts) + "\n"
    for line in (f"/export {tmp_path}/out.md", "/export out.txt", "/load nothing", "/load"):
        with pytest.raises(LlmrunError):
            type_into(chat, line)
    assert (tmp_path / "out.md").read_text() == written
