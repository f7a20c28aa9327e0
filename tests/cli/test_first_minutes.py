"""What somebody reads who meets llmrun for the first time, and meets it the wrong way."""

from __future__ import annotations

import re
import socket
from pathlib import Path

import gguf
import numpy as np
import pytest

from tests.cli.conftest import Done, Shell


def said(done: Done, code: int) -> str:
    """The error, which is one line and says what to do; it ended with that exit code."""
    assert (done.code, done.out) == (code, ""), done
    errors = [line for line in done.err.splitlines() if line.startswith("error: ")]
    assert len(errors) == 1
    assert "Traceback" not in done.err
    assert re.search(r"\S\. \w", errors[0]), f"no mend in {errors[0]!r}"
    return errors[0].removeprefix("error: ")


def test_model_that_nobody_knows_names_the_nearest_and_the_command(shell: Shell) -> None:
    error = said(shell.run("run", "smollm2:136m", "hi"), 3)
    assert "there is no model 'smollm2:136m'" in error
    assert "llmrun pull smollm2:" in error


def test_file_that_is_not_there_says_so(shell: Shell) -> None:
    assert said(shell.run("run", "./none.gguf", "hi"), 3).endswith("none.gguf does not exist. check the path")


def test_broken_file_says_what_is_wrong_in_it(shell: Shell, tmp_path: Path, tiny_gguf: Path) -> None:
    (tmp_path / "text.gguf").write_text("hello")
    error = said(shell.run("run", str(tmp_path / "text.gguf"), "hi"), 1)
    assert "it begins with 'hell', not with 'GGUF'. fetch it again" in error
    data = tiny_gguf.read_bytes()
    (tmp_path / "cut.gguf").write_bytes(data[: len(data) // 2])
    assert "is not a usable GGUF file" in said(shell.run("run", str(tmp_path / "cut.gguf"), "hi"), 1)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (
            ("run", "m", "--temperature", "hot", "hi"),
            "invalid value for '--temperature': it takes a number. see: llmrun run --help",
        ),
        (
            ("run", "m", "--seed", "x", "hi"),
            "invalid value for '--seed': it takes a whole number. see: llmrun run --help",
        ),
        (("run", "m", "-o", "temp=hot", "hi"), "there is no option 'temp'. did you mean 'temperature'?"),
        (
            ("run", "m", "-o", "temperature=hot", "hi"),
            "option temperature is 'hot', which is not a number from 0 to 100",
        ),
        (("run",), "missing argument 'MODEL'. see: llmrun run --help"),
        (("runn", "m"), "there is no command 'runn'. did you mean 'run'?"),
    ],
)
def test_wrong_words_are_named_with_the_right_ones(shell: Shell, words: tuple[str, ...], error: str) -> None:
    done = shell.run(*words)
    assert (done.code, done.err) == (2, f"error: {error}\n")


def test_misspelt_option_is_answered_with_the_nearest_ones(shell: Shell) -> None:
    error = said(shell.run("run", "m", "--temprature", "1", "hi"), 2)
    assert error.startswith("no such option: --temprature. did you mean --temperature")


def test_no_prompt_and_no_terminal_says_where_to_write_it(stocked: Shell) -> None:
    assert said(stocked.run("run", "tiny:1m", stdin=""), 2) == (
        "there is no prompt. write it after the model, or pipe it in"
    )


def test_port_that_is_taken_is_named_whether_it_is_served_or_started(stocked: Shell) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        stocked.env["LLMRUN_HOST"] = f"127.0.0.1:{port}"
        taken = f"port {port} on 127.0.0.1 is taken by another program. end it, or choose another port"
        assert said(stocked.finish("serve"), 1).startswith(taken)
        assert said(stocked.finish("run", "tiny:1m", "hi"), 5).startswith(f"the daemon cannot start: {taken}")


def test_architecture_that_llama_cpp_does_not_know_is_named(shell: Shell, tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "odd.gguf", "frobnicator")
    writer.add_block_count(1)
    writer.add_tensor("token_embd.weight", np.ones((8, 32), np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert said(shell.finish("run", str(tmp_path / "odd.gguf"), "hi", "--local"), 1) == (
        f"llama.cpp does not know models of the architecture 'frobnicator', which {tmp_path}/odd.gguf is."
        " take another model, or a newer llmrun"
    )


def test_context_that_memory_cannot_hold_says_both_sizes(stocked: Shell) -> None:
    error = said(stocked.finish("run", "tiny:1m", "hi", "--local", "--ctx", "2000000000"), 4)
    assert re.fullmatch(
        r"a context of 2000000000 tokens needs 512\.0 GB for its KV cache, but this machine can give"
        r" [\d.]+ GB at most\. ask for less context \(--ctx, num_ctx\)",
        error,
    )


def test_schema_that_cannot_be_compiled_names_the_option(stocked: Shell) -> None:
    error = said(stocked.finish("run", "tiny:1m", "hi", "--local", "--schema", '{"type": "objec"}'), 2)
    assert error.startswith("--schema: the schema 'type' at # cannot be compiled")


def test_image_is_refused_by_its_name_wherever_it_is_given(stocked: Shell, tmp_path: Path) -> None:
    (picture := tmp_path / "cat.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(range(256)))
    for words, where in (("--image", "--image"), ("--file", str(picture))):
        assert said(stocked.run("run", "tiny:1m", "What is it?", words, str(picture)), 2) == (
            f"{where}: images cannot be read yet, for no model that sees can be run."
            " give text, with --file or /file"
        )
    assert "--image FILE" in stocked.run("run", "--help").out
    with picture.open("rb") as stdin:
        assert "stdin: images cannot be read yet" in said(stocked.finish("run", "tiny:1m", stdin=stdin), 2)


def test_daemon_elsewhere_that_does_not_answer_says_where_to_start_it(shell: Shell) -> None:
    shell.env["LLMRUN_HOST"] = "daemon.invalid:11435"
    error = said(shell.run("run", "m", "hi"), 5)
    assert error == (
        "no daemon can be reached at http://daemon.invalid:11435. "
        "start it there (llmrun serve), or mend LLMRUN_HOST"
    )


def test_no_network_says_what_could_not_be_reached(shell: Shell, tmp_path: Path) -> None:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        shell.env |= {
            "HF_ENDPOINT": f"http://127.0.0.1:{held.getsockname()[1]}", "HF_HOME": str(tmp_path / "hf"),
        }  # fmt: skip
        done = shell.finish("run", "hf.co/some/model", "hi")
    error = said(done, 1)
    assert "the Hub cannot be reached" in error
    assert "check the connection" in error
