"""The commands as a person or a script runs them, with the real model."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import COMMAND, Daemon

pytestmark = pytest.mark.real

SHORT = ("--max-tokens", "12", "--temperature", "0")


def test_run_prints_the_answer_and_one_newline_and_nothing_else(daemon: Daemon, tmp_path: Path) -> None:
    out = tmp_path / "out.txt"
    with out.open("wb") as stdout:
        ended = subprocess.run(
            [*COMMAND, "run", DEFAULT_MODEL, "Say hi", *SHORT],
            env=daemon.env, stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, timeout=60,
        )  # fmt: skip
    text = out.read_bytes()
    assert ended.returncode == 0, ended.stderr
    assert text.strip()
    assert b"\x1b" not in text
    assert text.endswith(b"\n")
    assert not text.endswith(b"\n\n")


def test_run_with_a_pipe_puts_the_prompt_before_stdin(daemon: Daemon) -> None:
    def prompt_tokens(*args: str, stdin: bytes) -> bytes:
        ended = daemon.run("run", DEFAULT_MODEL, *args, *SHORT, stdin=stdin)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    piped = prompt_tokens("Translate to French:", stdin=b"The sky is blue\n")
    assert piped == prompt_tokens("Translate to French:\n\nThe sky is blue", stdin=b"")


def test_run_of_a_file_on_disk_uses_it_in_place(daemon: Daemon, model_path: Path, tmp_path: Path) -> None:
    link = tmp_path / "my model é.gguf"
    link.symlink_to(model_path)
    ended = subprocess.run(
        [*COMMAND, "run", f"./{link.name}", "hi", *SHORT], env=daemon.env, cwd=tmp_path,
        stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
    )  # fmt: skip
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.strip()


def test_run_into_a_pipe_that_closes_ends_quietly(daemon: Daemon) -> None:
    command = shlex.join([*COMMAND, "run", DEFAULT_MODEL, "Count to one hundred", "--max-tokens", "200"])
    ended = subprocess.run(
        ["bash", "-c", f"{command} | head -c 10; s=${{PIPESTATUS[0]}}; echo; echo $s"],
        env=daemon.env, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ended.stdout.splitlines()[-1] in ("0", "141")
    assert ended.stderr == ""


def test_run_unknown_model_exits_3_with_near_names(daemon: Daemon) -> None:
    ended = daemon.run("run", "smollm2:135n", "hi")
    assert ended.returncode == 3
    error = ended.stderr.decode()
    assert error.startswith("error: ")
    assert "smollm2:135m" in error
    assert len(error.splitlines()) == 1


def test_run_prompt_longer_than_the_context_exits_1_with_the_sentence_of_the_api(daemon: Daemon) -> None:
    text = b" ".join([b"word"] * 4000)
    ended = daemon.run("run", DEFAULT_MODEL, "--raw", "-", stdin=text)
    reply = daemon.http.post("/v1/completions", json={"model": DEFAULT_MODEL, "prompt": text.decode()})
    assert ended.returncode == 1
    sentence = reply.json()["error"]["message"].split(". ")[0]
    assert "2048" in sentence
    assert sentence in ended.stderr.decode()


def test_run_local_needs_no_daemon_and_says_the_same(daemon: Daemon) -> None:
    through = daemon.run("run", DEFAULT_MODEL, "Say hi", *SHORT)
    local = daemon.run("run", DEFAULT_MODEL, "Say hi", *SHORT, "--local")
    assert local.returncode == 0, local.stderr
    assert local.stdout == through.stdout


def test_list_show_ps_and_doctor_know_the_model(daemon: Daemon) -> None:
    daemon.run("run", DEFAULT_MODEL, "hi", *SHORT)
    assert DEFAULT_MODEL in daemon.run("list").stdout.decode()
    assert "135M" in daemon.run("show", DEFAULT_MODEL).stdout.decode()
    assert DEFAULT_MODEL in daemon.run("ps").stdout.decode()
    doctor = daemon.run("doctor")
    assert doctor.returncode == 0, doctor.stdout.decode()


def test_template_render_gives_the_models_own_prompt(daemon: Daemon) -> None:
    ended = daemon.run("template", "render", DEFAULT_MODEL, stdin=b'[{"role": "user", "content": "Hi"}]')
    assert ended.stdout.decode().endswith("<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")


def test_python_dash_m_llmrun_is_the_command() -> None:
    ended = subprocess.run([sys.executable, "-m", "llmrun", "--version"], capture_output=True, timeout=30)
    assert ended.stdout.startswith(b"llmrun ")
