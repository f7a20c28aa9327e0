"""`llmrun map` against the real HTTP app; the service behind it plays a script."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from llmrun.cli.mapping import answers
from llmrun.errors import CONTEXT_LENGTH, NO_MEMORY, OVERLOADED, RUNNER_DIED, Kind, LlmrunError
from llmrun.types import Event, GenerateRequest, Message
from tests.api.scripted import MODEL, answer
from tests.cli.conftest import TIMEOUT, Done, Shell


async def echo(request: GenerateRequest) -> AsyncGenerator[Event, None]:
    """Each answer repeats the prompt; the earlier of two is the slower."""
    if request.messages is not None:
        text = request.messages[-1].content
        await asyncio.sleep(0.02 if text.endswith("0") else 0)
        for event in answer(f"<{text}>"):
            yield event
        return
    for event in answer(""):
        yield event


@pytest.fixture
def echoing(served: Shell) -> Shell:
    served.daemon.script = echo
    return served


def records(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.out.splitlines()]


def prompts(shell: Shell) -> list[str]:
    return sorted(asked.messages[-1].content for asked in shell.daemon.asked if asked.messages is not None)


def test_map_answers_every_line_in_order(echoing: Shell) -> None:
    lines = [f"line {number}" for number in range(40)]
    done = echoing.run("map", MODEL, "Say {}", stdin="\n".join(lines))
    assert done.code == 0
    assert [record["index"] for record in records(done)] == list(range(40))
    assert [record["input"] for record in records(done)] == lines
    assert [record["output"] for record in records(done)] == [f"<Say {line}>" for line in lines]
    assert "40 done" in done.err


def test_map_sends_what_the_options_say_and_lets_others_go_first(echoing: Shell) -> None:
    echoing.run("map", MODEL, "{}", "--system", "Be kind.", "--max-tokens", "5", "-o", "top_k=3", stdin="a\n")
    asked = echoing.daemon.asked[-1]
    assert asked.messages == (
        Message(role="system", content="Be kind."),
        Message(role="user", content="a"),
    )
    assert (asked.options.max_tokens, asked.options.top_k, asked.priority) == (5, 3, answers.PRIORITY)


def test_map_of_json_lines_fills_in_fields(echoing: Shell) -> None:
    done = echoing.run("map", MODEL, "{name} is {n}", stdin='{"name": "Ann", "n": 1}\n\n{"name": "Bob"}\n')
    first, second = records(done)
    assert (first["input"], first["output"]) == ({"name": "Ann", "n": 1}, "<Ann is 1>")
    assert (second["index"], second["output"]) == (2, None)
    assert second["error"]["message"] == "there is no field 'n'. there are: name"
    assert done.code == 1
    assert "1 of 2 lines failed" in done.err


def test_map_with_a_schema_prints_values(served: Shell) -> None:
    async def script(_request: GenerateRequest) -> AsyncGenerator[Event, None]:
        for event in answer('{"n": 1}'):
            yield event

    served.daemon.script = script
    done = served.run("map", MODEL, "{}", "--schema", '{"type": "object"}', stdin="a\n")
    assert records(done)[0]["output"] == {"n": 1}
    output = served.daemon.asked[-1].output_format
    assert output is not None
    assert output.kind == "json_schema"


def failing(kind: Kind, times: int = 10_000) -> Any:
    left = [times]

    async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
        if request.messages is not None and request.messages[-1].content == "bad" and left[0]:
            left[0] -= 1
            raise LlmrunError(kind, "it does not go", hint="")
        async for event in echo(request):
            yield event

    return script


def test_map_a_line_that_fails_leaves_the_others_and_exits_1(served: Shell) -> None:
    served.daemon.script = failing(CONTEXT_LENGTH)
    done = served.run("map", MODEL, "{}", stdin="a\nbad\nc\n")
    first, second, third = records(done)
    assert (first["output"], third["output"]) == ("<a>", "<c>")
    assert second["error"] == {"code": "context_length_exceeded", "message": "it does not go"}
    assert done.code == 1


@pytest.mark.parametrize("kind", [OVERLOADED, RUNNER_DIED])
def test_map_what_may_pass_is_tried_again(served: Shell, kind: Kind, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "_PAUSE", 0.0)
    served.daemon.script = failing(kind, times=2)
    done = served.run("map", MODEL, "{}", stdin="bad\n")
    assert (done.code, records(done)[0]["output"]) == (0, "<bad>")


def test_map_what_no_line_survives_ends_the_run(served: Shell) -> None:
    served.daemon.script = failing(NO_MEMORY)
    done = served.run("map", MODEL, "{}", "--concurrency", "1", stdin="a\nbad\nc\n")
    assert done.code == NO_MEMORY.exit
    assert [record["index"] for record in records(done)] == [0]
    assert done.err.splitlines()[-1] == "error: it does not go"


def test_map_resume_asks_only_what_has_no_result(echoing: Shell, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    lines = "".join(f"line {number}\n" for number in range(6))
    first = echoing.run("map", MODEL, "{}", "--resume", str(path), stdin=lines)
    assert (first.code, first.out) == (0, "")
    whole = path.read_text("utf-8")
    kept = whole.splitlines(keepends=True)
    path.write_text("".join(kept[:3]) + kept[3][:20], "utf-8")
    echoing.daemon.asked.clear()
    again = echoing.run("map", MODEL, "{}", "--resume", str(path), stdin=lines)
    assert again.code == 0
    assert prompts(echoing) == ["line 3", "line 4", "line 5"]
    assert path.read_text("utf-8") == whole
    assert "3 lines have results" in again.err


def test_map_resume_with_another_input_is_refused(echoing: Shell, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    echoing.run("map", MODEL, "{}", "--resume", str(path), stdin="a\n")
    done = echoing.run("map", MODEL, "{}", "--resume", str(path), stdin="b\n")
    assert done.code == 2
    assert "line 1 of stdin is not the one" in done.err


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        (("map", MODEL, "no place"), "a\n", "the template has no place"),
        (("map", MODEL, "{}"), None, "there are no lines"),
    ],
)
def test_map_wrong_usage(served: Shell, words: tuple[str, ...], stdin: str | None, said: str) -> None:
    done = served.run(*words, stdin=stdin)
    assert done.code == 2
    assert said in done.err


def test_map_interrupted_keeps_what_is_done(served: Shell, tmp_path: Path) -> None:
    async def script(request: GenerateRequest) -> AsyncGenerator[Event, None]:
        if request.messages is not None and request.messages[-1].content == "forever":
            await asyncio.sleep(TIMEOUT)
        async for event in echo(request):
            yield event

    served.daemon.script = script
    path = tmp_path / "results.jsonl"
    with served.spawn("map", MODEL, "{}", "--resume", str(path)) as process:
        assert process.stdin is not None
        assert process.stderr is not None
        process.stdin.write(b"a\nb\nforever\nc\n")
        process.stdin.flush()  # and stays open: it waits for lines and for an answer
        while not path.exists() or path.read_bytes().count(b"\n") < 2:
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        assert process.wait(TIMEOUT) == 130
        assert b"stopped: 2 done" in process.stderr.read()
    assert [json.loads(line)["index"] for line in path.read_text("utf-8").splitlines()] == [0, 1]


def test_map_whose_reader_goes_away_ends_quietly(echoing: Shell) -> None:
    read, write = os.pipe()
    process = echoing.spawn("map", MODEL, "{}", stdout=write)
    os.close(write)
    os.close(read)
    _, err = process.communicate(b"a\n" * 50, TIMEOUT)
    assert process.returncode == 141
    assert b"Traceback" not in err
