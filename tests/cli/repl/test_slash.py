from __future__ import annotations

import io

import pytest

from llmrun.cli.output import Output
from llmrun.cli.repl import slash
from llmrun.cli.repl.conversation import Conversation
from llmrun.errors import USAGE, LlmrunError
from llmrun.types import Options


def do(line: str, talk: Conversation | None = None) -> tuple[Conversation, str]:
    """What a line does, and what it prints as a result."""
    talk = talk or Conversation("m")
    out = io.StringIO()
    command = slash.parse(line)
    assert command is not None
    slash.execute(talk, Output(out, io.StringIO()), *command)
    return talk, out.getvalue()


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
    assert all(command.usage in shown for command in slash.COMMANDS.values())


def test_ollamas_spellings_are_understood() -> None:
    assert do("/?")[1] == do("/help")[1]
    with pytest.raises(slash.Bye):
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
    with pytest.raises(slash.Bye):
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
