"""`llmrun chat`: line by line from a pipe, and in a real terminal."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import threading
import time
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path

import pytest

from llmrun.daemon.pool import LoadedModel
from llmrun.errors import RUNNER_DIED, LlmrunError
from llmrun.types import (
    AnyRequest,
    Event,
    Finished,
    GenerateRequest,
    Reasoning,
    Started,
    Stopped,
    Text,
    Tokenized,
    Usage,
)
from tests.api.scripted import MODEL, TIMINGS, Script, answer
from tests.cli.conftest import TIMEOUT, Shell
from tests.support.frames import model_info, stats
from tests.support.terminal import Terminal


def said(shell: Shell) -> list[list[tuple[str, str]]]:
    """The messages of each request."""
    return [[(m.role, m.content) for m in request.messages or ()] for request in shell.daemon.asked]


HELLO = "Hello wörld"


def test_pipe_every_line_is_a_turn_of_one_conversation(served: Shell) -> None:
    done = served.run("chat", MODEL, stdin='one\n\n"""two\nlines"""\nlast')
    assert (done.code, done.out, done.err) == (0, f"{HELLO}\n" * 3, "")
    assert said(served)[-1] == [
        ("user", "one"),
        ("assistant", HELLO),
        ("user", "two\nlines"),
        ("assistant", HELLO),
        ("user", "last"),
    ]


def test_pipe_slash_commands_work_and_bye_ends(served: Shell) -> None:
    done = served.run("chat", MODEL, "--system", "S", stdin="/set seed 3\nhi\n/clear\nhi\n/bye\nnever\n")
    assert done.code == 0
    assert said(served) == [[("system", "S"), ("user", "hi")]] * 2
    assert served.daemon.asked[0].options.seed == 3


def test_pipe_error_ends_it_with_its_exit_code(served: Shell) -> None:
    done = served.run("chat", MODEL, stdin="/nonsense\nhi\n")
    assert (done.code, done.out) == (2, "")
    assert served.daemon.asked == []


def test_run_without_prompt_from_an_empty_pipe_is_no_chat(served: Shell) -> None:
    assert served.run("run", MODEL, stdin="").code == 2


def in_terminal(shell: Shell, *args: str) -> Terminal:
    return Terminal({**os.environ, **shell.env}, *args)


@pytest.fixture
def terminal(served: Shell) -> Iterator[Terminal]:
    terminal = in_terminal(served, "run", MODEL)
    terminal.expect(">>>")
    yield terminal
    terminal.close()


def test_terminal_answers_and_leaves_on_ctrl_d(served: Shell, terminal: Terminal) -> None:
    terminal.type("hi\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("\x04")
    assert terminal.process.wait(TIMEOUT) == 0
    assert said(served) == [[("user", "hi")]]


def test_terminal_several_lines_by_fence_backslash_and_alt_enter(served: Shell, terminal: Terminal) -> None:
    for keys in ('"""one\rtwo"""\r', "one\\\rtwo\r", "one\x1b\rtwo\r"):
        terminal.type(keys)
        terminal.expect(f"{HELLO}.*>>>")
    assert [turns[-1] for turns in said(served)] == [("user", "one\ntwo")] * 3


def test_terminal_ctrl_c_stops_the_answer_and_not_the_program(served: Shell, terminal: Terminal) -> None:
    plain = served.daemon.script

    async def endless(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        while True:
            yield Text(0, "la ")
            await asyncio.sleep(0.01)

    served.daemon.script = endless
    terminal.type("sing\r")
    terminal.expect("la la la ")
    terminal.type("\x03")
    terminal.expect("(stopped).*>>>")
    served.daemon.script = plain
    terminal.type("and now\r")
    terminal.expect(HELLO)
    first, second = said(served)[-1][:2]
    assert first == ("user", "sing")
    assert second[1].startswith("la la la ")


def test_terminal_error_is_shown_and_the_chat_goes_on(served: Shell, terminal: Terminal) -> None:
    plain = served.daemon.script

    async def dies(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        raise LlmrunError(RUNNER_DIED, "killed by SIGKILL", hint="again")
        yield

    served.daemon.script = dies
    terminal.type("hi\r")
    terminal.expect("error: killed by SIGKILL. again.*>>>")
    served.daemon.script = plain
    terminal.type("/set nonsense 1\r")
    terminal.expect("error: there is no option 'nonsense'.*>>>")
    terminal.type("hi\r")
    terminal.expect(HELLO)
    assert said(served)[-1] == [("user", "hi")]


def test_terminal_ctrl_c_at_the_prompt_clears_the_line(served: Shell, terminal: Terminal) -> None:
    terminal.type("half a thought\x03")
    terminal.expect("Ctrl-D or /bye leaves.*>>>")
    terminal.type("/bye\r")
    assert terminal.process.wait(TIMEOUT) == 0
    assert said(served) == []


def test_terminal_history_is_kept_for_oneself(served: Shell, terminal: Terminal, home: Path) -> None:
    terminal.type("remember me\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("\x04")
    terminal.process.wait(TIMEOUT)
    history = home / "state" / "chat_history"
    assert history.stat().st_mode & 0o077 == 0
    again = in_terminal(served, "chat", MODEL)
    again.expect(">>>")
    again.type("\x1b[A\r")
    again.expect(HELLO)
    again.close()
    assert said(served)[-1] == [("user", "remember me")]


def test_terminal_colour_and_control_codes_of_the_model_are_shown_not_obeyed(
    served: Shell, terminal: Terminal
) -> None:
    async def paints(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer("\x1b]0;title\x07"):
            yield event

    served.daemon.script = paints
    terminal.type("hi\r")
    terminal.expect("␛]0;title␇")


def test_terminal_without_colour_wanted_shows_errors_plain(served: Shell) -> None:
    served.env["NO_COLOR"] = "1"
    leader, follower = pty.openpty()
    done = served.finish("show", "none", stdin=subprocess.DEVNULL, stderr=follower)
    shown = os.read(leader, 4096)
    os.close(leader)
    os.close(follower)
    assert done.code == 3
    assert shown.startswith(b"error: ")


def test_pipe_keeps_a_chat_that_has_a_name_and_no_other(served: Shell, home: Path) -> None:
    served.run("chat", MODEL, stdin="one\n")
    assert not (home / "state" / "chats").exists()
    served.run("chat", MODEL, "--session", "mine", stdin="one\n")
    served.run("chat", "--session", "mine", stdin="two\n")
    assert said(served)[-1] == [("user", "one"), ("assistant", HELLO), ("user", "two")]


def test_continue_without_a_chat_and_two_names_are_refused(served: Shell) -> None:
    assert "begin one: llmrun chat" in served.run("chat", "--continue", stdin="").err
    assert served.run("chat", "--continue", "--session", "x", stdin="").code == 2


def script_of(*events: Event) -> Script:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in events:
            yield event

    return script


def test_terminal_shows_markdown_and_a_pipe_the_text(served: Shell, terminal: Terminal) -> None:
    text = "# Head\n\n- **bold** `code`\n"
    served.daemon.script = script_of(*answer(*text))  # a character at a time
    terminal.type("hi\r")
    terminal.expect("Head\r\n\r\n• bold code\r\n.*>>>")
    assert "\x1b[1mbold\x1b[0m" in terminal.raw
    assert served.run("chat", MODEL, stdin="hi\n").out == f"{text}\n"


def test_terminal_reasoning_is_dim_and_folds(served: Shell, terminal: Terminal) -> None:
    served.daemon.script = script_of(
        Started(5, 42), Reasoning(0, "Hm, so."), Text(0, "Yes"), Stopped(0, "stop"),
        Finished(Usage(prompt=5, completion=4, reasoning=3), TIMINGS),
    )  # fmt: skip
    terminal.type("hi\r")
    terminal.expect("Hm, so.\r\n\r\nYes\r\n.*>>>")
    assert "\x1b[2mHm,\x1b[22m\x1b[2m so.\x1b[22m" in terminal.raw
    terminal.type("/think hide\r")
    terminal.expect("hidden.*>>>")
    terminal.type("hi\r")
    assert "Hm" not in terminal.expect("Yes\r\n.*unfolds it.*>>>")
    terminal.type("/think show\r")
    terminal.expect("Hm, so.*>>>")
    terminal.type("/stats\r")
    terminal.expect("4 tokens, 3 of them reasoning.*2 answers, 8 tokens")


def test_terminal_pasted_lines_are_one_message(served: Shell, terminal: Terminal) -> None:
    terminal.type("\x1b[200~one\ntwo\n\x1b[201~three\r")
    terminal.expect(f"{HELLO}.*>>>")
    assert said(served) == [[("user", "one\ntwo\nthree")]]


def test_terminal_tab_completes_and_ctrl_r_finds(terminal: Terminal) -> None:
    terminal.type("/set min_k\t 3\r")
    terminal.expect(r"min_keep\s+3\r\n.*>>>")
    terminal.type("something else\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("\x12keep")
    terminal.expect("min_keep 3.*search backward: keep")
    terminal.type("\r\r")
    terminal.expect(r"min_keep\s+3\r\n.*>>>")


def test_terminal_failed_question_is_kept_also_for_a_later_chat(served: Shell, terminal: Terminal) -> None:
    plain = served.daemon.script

    async def dies(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "Half an ")
        raise LlmrunError(RUNNER_DIED, "killed by SIGKILL", hint="again")

    terminal.type("first\r")
    terminal.expect(f"{HELLO}.*>>>")
    served.daemon.script = dies
    terminal.type("second\r")
    terminal.expect("killed by SIGKILL.*your message is kept.*>>>")
    terminal.close()
    served.daemon.script = plain
    again = in_terminal(served, "chat", "--continue")
    again.expect("1 answer by tiny:1m; the last question has none.*>>>")
    again.type("/retry\r")
    again.expect(f"{HELLO}.*>>>")
    again.close()
    assert said(served)[-1] == [("user", "first"), ("assistant", HELLO), ("user", "second")]


def test_terminal_edit_offers_the_last_question_to_be_changed(served: Shell, terminal: Terminal) -> None:
    terminal.type("one\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("/edit\r")
    terminal.expect(">>> one")
    terminal.type(" more\r")
    terminal.expect(f"{HELLO}.*>>>")
    assert said(served)[-1] == [("user", "one more")]


def test_terminal_file_goes_with_the_next_message_alone(
    served: Shell, terminal: Terminal, tmp_path: Path
) -> None:
    (tmp_path / "f.txt").write_text("content\n")
    terminal.type(f"/file {tmp_path}/f.txt\r")
    terminal.expect(r"goes\s+with\s+your\s+next\s+message.*>>>")
    for question in ("Sum up:", "and?"):
        terminal.type(f"{question}\r")
        terminal.expect(f"{HELLO}.*>>>")
    assert [turns[-1][1] for turns in said(served)] == ["Sum up:\n\ncontent", "and?"]


def test_terminal_loaded_chat_is_what_the_model_gets_next(served: Shell, terminal: Terminal) -> None:
    for keys, shown in (
        ("one\r", HELLO),
        ("/save mine\r", "saved as mine"),
        ("/clear\r", "starts anew; what was said is kept as mine"),
        ("two\r", HELLO),
        ("/save other\r", "saved as other"),
        ("/load min\t\r", "mine: 1 answer by tiny:1m"),
        ("three\r", HELLO),
    ):
        terminal.type(keys)
        terminal.expect(f"{shown}.*>>>")
    assert said(served)[-1] == [("user", "one"), ("assistant", HELLO), ("user", "three")]
    assert said(served)[-2] == [("user", "two")]


def test_terminal_context_counts_by_the_model(served: Shell, terminal: Terminal) -> None:
    async def counts(_request: AnyRequest) -> AsyncGenerator[Event, None]:
        yield Tokenized(tuple(range(1024)))
        yield Finished(Usage(prompt=0, completion=0), TIMINGS)

    served.daemon.lookup = counts
    served.daemon.running = [LoadedModel(MODEL, "ready", 1.0, model_info(ctx=4096), stats(), 1, 1.0, None, 0)]
    terminal.type("hi\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("/context\r")
    terminal.expect(r"\[█{10}░{30}\] 1,024 of 4,096 tokens \(25%\)")


def test_terminal_ctrl_d_typed_while_a_command_works_leaves_behind_it(
    served: Shell, terminal: Terminal
) -> None:
    asked, go_on = threading.Event(), threading.Event()

    async def counts(_request: AnyRequest) -> AsyncGenerator[Event, None]:
        asked.set()
        await asyncio.to_thread(go_on.wait, TIMEOUT)
        yield Tokenized((1, 2))
        yield Finished(Usage(prompt=0, completion=0), TIMINGS)

    served.daemon.lookup = counts
    terminal.type("hi\r")
    terminal.expect(f"{HELLO}.*>>>")
    terminal.type("/context\r")
    assert asked.wait(TIMEOUT)
    terminal.type("\x04")
    time.sleep(0.2)  # the key has to reach the terminal while nobody reads it
    go_on.set()
    terminal.expect("2 tokens")
    assert terminal.process.wait(TIMEOUT) == 0


def test_terminal_keys_typed_during_an_answer_wait_for_the_prompt(served: Shell, terminal: Terminal) -> None:
    plain = served.daemon.script

    async def slow(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        yield Started(1, 1)
        yield Text(0, "well, ")
        while served.daemon.script is slow:  # noqa: ASYNC110 (set from another thread)
            await asyncio.sleep(0.01)
        for event in answer("yes"):
            yield event

    served.daemon.script = slow
    terminal.type("hi\r")
    terminal.expect("well,")
    terminal.type("next")
    served.daemon.script = plain
    assert "next" not in terminal.expect("yes")
    terminal.expect(">>> .*next")
