"""`llmrun run` against the real HTTP app; the service behind it plays a script."""

from __future__ import annotations

import asyncio
import json
import os
import pty
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import CONTEXT_LENGTH, NO_MEMORY, RUNNER_DIED, LlmrunError
from llmrun.store import Store
from llmrun.types import (
    Event,
    Failed,
    Finished,
    GenerateRequest,
    Limit,
    Message,
    Options,
    Reasoning,
    Started,
    Stopped,
    Text,
    Thinking,
    Usage,
)
from tests.api.scripted import MODEL, TIMINGS, Script, answer
from tests.cli.conftest import TIMEOUT, Shell


def says(*pieces: str, reason: str = "stop", limit: Limit | None = None) -> Script:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer(*pieces, reason=reason, limit=limit):
            yield event

    return script


def fails(error: LlmrunError, *before: str) -> Script:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        if not before:
            raise error
        yield Started(1, 1)
        for piece in before:
            yield Text(0, piece)
        yield Failed(error.info())

    return script


async def endless(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
    yield Started(1, 1)
    while True:
        yield Text(0, "la ")
        await asyncio.sleep(0.005)


def asked(shell: Shell) -> GenerateRequest:
    (request,) = shell.daemon.asked
    return request


def test_answer_is_exactly_the_text_and_one_newline(served: Shell) -> None:
    served.daemon.script = says(" a\n", "\x1b[1mb \U0001f600\n")
    done = served.run("run", MODEL, "Say", "hi")
    assert (done.code, done.out, done.err) == (0, " a\n\x1b[1mb \U0001f600\n\n", "")
    assert asked(served).messages == (Message(role="user", content="Say hi"),)


def test_stdin_follows_the_prompt(served: Shell) -> None:
    served.run("run", MODEL, "Translate:", stdin="The sky\n")
    assert asked(served).messages == (Message(role="user", content="Translate:\n\nThe sky"),)


def test_system_prompt_comes_first(served: Shell) -> None:
    served.run("run", MODEL, "hi", "--system", "Be brief.")
    assert asked(served).messages == (
        Message(role="system", content="Be brief."),
        Message(role="user", content="hi"),
    )


def test_options_reach_the_daemon_and_a_flag_beats_a_pair(served: Shell) -> None:
    options = "--temperature 0 --top-p 0.5 --seed 3 --max-tokens 9 --stop a --stop b -o top_k=7 -o seed=4"
    assert served.run("run", MODEL, "hi", *options.split()).code == 0
    assert asked(served).options == Options(
        temperature=0.0, top_p=0.5, seed=3, max_tokens=9, stop=("a", "b"), top_k=7
    )


def test_format_and_schema_reach_the_daemon_with_and_without_a_template(
    served: Shell, tmp_path: Path
) -> None:
    (tmp_path / "s.json").write_text('{"type": "integer"}')
    served.run("run", MODEL, "hi", "--format", "json")
    served.run("run", MODEL, "--raw", "hi", "--schema", str(tmp_path / "s.json"))
    formats = [request.output_format for request in served.daemon.asked]
    assert [(f.kind, f.text) for f in formats if f] == [
        ("json_object", ""),
        ("json_schema", '{"type": "integer"}'),
    ]


def test_schema_that_is_not_json_never_reaches_the_daemon(served: Shell) -> None:
    done = served.run("run", MODEL, "--schema", "{nonsense", stdin="hi")
    assert (done.code, "error: --schema is not JSON" in done.err) == (2, True)
    assert served.daemon.asked == []


def test_raw_sends_the_prompt_without_a_template(served: Shell) -> None:
    served.run("run", MODEL, "--raw", "<s>Once")
    assert (asked(served).prompt, asked(served).messages) == ("<s>Once", None)


async def thinks(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
    yield Started(5, 42)
    yield Reasoning(0, "Let me ")
    yield Reasoning(0, "see.")
    yield Text(0, "Yes")
    yield Stopped(0, "length")
    yield Finished(Usage(prompt=5, completion=4, reasoning=3, drafted=2, accepted=1), TIMINGS)


@pytest.mark.parametrize(
    ("flags", "out"),
    [
        ((), "Yes\n"),
        (("--show-thinking",), "Let me see.\n\nYes\n"),
        (("--think", "--hide-thinking"), "Yes\n"),
    ],
)
def test_reasoning_stays_out_of_a_pipe_unless_it_is_asked_for(
    served: Shell, flags: tuple[str, ...], out: str
) -> None:
    served.daemon.script = thinks
    assert served.run("run", MODEL, "hi", *flags).out == out


def test_verbose_and_json_tell_of_reasoning_guesses_and_the_end(served: Shell) -> None:
    served.daemon.script = thinks
    err = served.run("run", MODEL, "hi", "--verbose").err
    assert "answer   4 tokens, 3 of them reasoning, 1 of 2 guesses right\nended    length\n" in err
    assert json.loads(served.run("run", MODEL, "hi", "--json").out)["reasoning"] == "Let me see."


@pytest.mark.parametrize(
    ("flag", "wanted"),
    [
        ("--think", Thinking(enabled=True, field="think")),
        ("--no-think", Thinking(enabled=False, field="think")),
    ],
)
def test_think_and_no_think_reach_the_daemon(served: Shell, flag: str, wanted: Thinking) -> None:
    served.run("run", MODEL, "hi", flag)
    assert asked(served).thinking == wanted
    assert served.run("run", MODEL, "--raw", "hi", flag).code == 2


def test_file_is_put_after_the_prompt(served: Shell, tmp_path: Path) -> None:
    (tmp_path / "f.txt").write_text("content\n")
    served.run("run", MODEL, "Sum up:", "--file", str(tmp_path / "f.txt"))
    assert asked(served).messages == (Message(role="user", content="Sum up:\n\ncontent"),)


def test_path_is_sent_as_it_lies_on_disk(
    served: Shell, paths: Paths, tiny_gguf: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tiny_gguf.parent)
    served.daemon.stored = [Store(paths).resolve(str(tiny_gguf))]
    served.run("run", f"./{tiny_gguf.name}", "hi")
    assert asked(served).model == str(tiny_gguf)


def test_json_is_one_object_with_usage_and_timings(served: Shell) -> None:
    done = served.run("run", MODEL, "hi", "--json")
    assert done.out.count("\n") == 1
    result = json.loads(done.out)
    assert (result["model"], result["text"], result["finish_reason"]) == (MODEL, "Hello wörld", "stop")
    assert result["usage"].items() >= {"prompt": 5, "completion": 2, "cached": 2}.items()
    assert result["timings"]["ttft_ms"] == 21.0


def test_verbose_puts_figures_on_stderr(served: Shell) -> None:
    done = served.run("run", MODEL, "hi", "--verbose")
    assert done.out == "Hello wörld\n"
    assert "5 tokens, 2 of them cached" in done.err
    assert "ttft     21 ms" in done.err


@pytest.mark.parametrize(
    ("limit", "told"),
    [("context", "the context is full"), ("time", "its time is up"), ("tokens", "max_tokens is reached")],
)
def test_answer_cut_by_a_limit_says_which_unless_it_was_wanted(
    served: Shell, limit: Limit, told: str
) -> None:
    served.daemon.script = says("x", reason="length", limit=limit)
    assert f"cut off: {told}" in served.run("run", MODEL, "hi").err.replace("the model's own ", "")
    for most in ("0", "1"):
        noted = served.run("run", MODEL, "hi", "--max-tokens", most).err
        assert (noted == "") == (limit == "tokens")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (LlmrunError(CONTEXT_LENGTH, "9031 tokens, the context holds 8192", hint="cut"), 1),
        (LlmrunError(NO_MEMORY, "it needs 9 GB and 8 GB are free", hint="cut"), 4),
    ],
)
def test_failure_of_the_daemon_is_the_same_sentence_here(
    served: Shell, error: LlmrunError, code: int
) -> None:
    served.daemon.script = fails(error)
    done = served.run("run", MODEL, "hi")
    assert (done.code, done.out, done.err) == (code, "", f"error: {error.message}. cut\n")


def test_failure_in_the_middle_leaves_the_text_so_far(served: Shell) -> None:
    served.daemon.script = fails(LlmrunError(RUNNER_DIED, "killed by SIGKILL", hint="again"), "Hel", "lo")
    done = served.run("run", MODEL, "hi")
    assert (done.code, done.out, done.err) == (1, "Hello", "error: killed by SIGKILL. again\n")


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (["tinny:1m", "hi"], 3, "tiny:1m"),
        (["Tiny Model", "hi"], 2, "not a model reference"),
        (["./none.gguf", "hi"], 3, "none.gguf"),
        ([MODEL], 2, "there is no prompt"),
        ([MODEL, "--json"], 2, "there is no prompt"),
        ([MODEL, "hi", "-o", "temp=1"], 2, "did you mean 'temperature'?"),
        ([MODEL, "hi", "--raw", "--system", "x"], 2, "--raw sends no system prompt"),
        ([MODEL, "hi", "--temperature", "-3"], 2, "temperature should be"),
    ],
)
def test_wrong_arguments_are_refused_in_one_line(
    served: Shell, args: list[str], code: int, words: str
) -> None:
    done = served.run("run", *args)
    assert (done.code, done.out) == (code, "")
    assert words in done.err
    assert done.err.count("\n") == 1


def test_daemon_that_cannot_be_reached_is_exit_code_5(stocked: Shell) -> None:
    stocked.env["LLMRUN_HOST"] = "host.invalid:9"
    done = stocked.run("run", MODEL, "hi")
    assert done.code == 5
    assert "host.invalid:9" in done.err


def test_output_to_a_file_holds_no_escape_byte(served: Shell, tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out:
        done = served.finish("run", MODEL, "hi", stdout=out)
    assert done.code == 0
    assert (tmp_path / "out").read_bytes() == "Hello wörld\n".encode()
    assert "\x1b" not in done.err


def test_output_is_utf8_whatever_the_locale(served: Shell) -> None:
    served.env.update(LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    done = served.finish("run", MODEL, typed="hö".encode())
    assert done.out == "Hello wörld\n"
    assert asked(served).messages == (Message(role="user", content="hö"),)


def test_pieces_arrive_as_they_are_made_and_a_closed_pipe_ends_quietly(served: Shell) -> None:
    served.daemon.script = endless
    with served.spawn("run", MODEL, "hi", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.read(6) == b"la la "
        process.stdout.close()
        assert process.wait(TIMEOUT) == 141
        assert process.stderr.read() == b""


def test_interrupt_is_exit_code_130_without_a_word_and_cancels(served: Shell) -> None:
    served.daemon.script = endless
    with served.spawn("run", MODEL, "hi", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        process.stdout.read(3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=TIMEOUT)
    assert (process.returncode, err) == (130, b"")


def test_prompt_given_does_not_wait_for_a_terminal(served: Shell) -> None:
    leader, follower = pty.openpty()
    assert served.finish("run", MODEL, "hi", stdin=follower).out == "Hello wörld\n"
    os.close(leader)
    os.close(follower)


def test_prompt_given_does_not_wait_for_a_closed_stdin(served: Shell) -> None:
    command = ["sh", "-c", f"exec {sys.executable} -m llmrun run {MODEL} hi <&-"]
    env = {**os.environ, **served.env}
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=TIMEOUT, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "Hello wörld\n", "")


def test_model_that_is_not_here_is_pulled_first(served: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    from llmrun.store import PullProgress, Store, StoredModel

    pulled: list[str] = []

    def pull(store: Store, reference: str, *, on_progress: object, **_: object) -> StoredModel:
        pulled.append(reference)
        assert callable(on_progress)
        on_progress(PullProgress("download", "x.gguf", 5, 10))
        return Store.resolve(store, MODEL)

    monkeypatch.setattr(Store, "pull", pull)
    done = served.run("run", "hf.co/org/repo", "hi")
    assert pulled == ["hf.co/org/repo"]
    assert (done.code, done.out) == (0, "Hello wörld\n")
    assert "downloading x.gguf: 5 bytes of 10 bytes (50 %)" in done.err
    assert asked(served).model == MODEL


def test_template_is_filled_with_stdin_and_variables(served: Shell, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_text("Write to {name}, {tone}:\n{}\n")
    words = ("--template", str(file), "--var", "name=Ann", "--var", "tone=kindly")
    assert served.run("run", MODEL, *words, stdin="thanks\n").code == 0
    assert asked(served).messages == (Message(role="user", content="Write to Ann, kindly:\nthanks"),)
    assert served.run("run", MODEL, "hi", "--var", "a=1").code == 2
