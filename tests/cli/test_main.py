"""The boundary and the habits: exit codes, streams, closed pipes, what a start imports."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from llmrun import __version__
from llmrun.cli import main as boundary
from llmrun.cli.groups import ALIASES, SECTIONS, load_command
from llmrun.errors import NO_MEMORY, UNKNOWN_MODEL, LlmrunError
from tests.cli.conftest import Shell

NAMES = [name for section in SECTIONS.values() for name in section]
HEAVY = ("llama_cpp", "fastapi", "pydantic", "numpy", "huggingface_hub", "httpx", "prompt_toolkit")


def test_no_command_shows_help_on_stdout(shell: Shell) -> None:
    done = shell.run()
    assert done.code == 0
    assert done.err == ""
    for name in NAMES:
        assert re.search(rf"^  {name}\b", done.out, re.MULTILINE), name


@pytest.mark.parametrize("name", [*NAMES, *ALIASES])
def test_every_command_has_help_with_an_example(shell: Shell, name: str) -> None:
    done = shell.run(name, "--help")
    assert done.code == 0
    commands = getattr(load_command(name), "commands", None)
    pages = [shell.run(name, inner, "--help").out for inner in commands] if commands else [done.out]
    for page in pages:
        assert re.search(r"Examples?:\n +(\S.*\| |\$EDITOR.*|([A-Z_]+=\S+ )+)?\"?\$?\(?llmrun", page), page


@pytest.mark.parametrize("words", [("run",), ("config", "set"), ()])
def test_help_is_a_command_too(shell: Shell, words: tuple[str, ...]) -> None:
    asked = shell.run("help", *words)
    assert (asked.code, asked.err) == (0, "")
    assert asked.out == shell.run(*words, "--help").out


@pytest.mark.parametrize("name", [*NAMES, *ALIASES])
def test_help_names_what_is_written_without_braces_and_types_of_python(shell: Shell, name: str) -> None:
    assert not re.search(r"<\w|[{]|list\[", shell.run(name, "--help").out.partition("Examples:")[0])
    options = re.split(r"\n(?:Arguments|Options):", shell.run(name, "--help").out)[1:]
    assert options
    assert not any(re.search(r"<\w|list\[", part) for part in options)


def test_help_on_a_narrow_terminal_is_whole_and_no_wider(shell: Shell) -> None:
    shell.env["COLUMNS"] = "40"
    page = shell.run("--help").out
    assert "..." not in page.partition("Options:")[2].replace("...]", "")
    for name in NAMES:
        options = shell.run(name, "--help").out.partition("\nOptions:")[2]
        assert max(map(len, options.splitlines())) <= 40, options


def test_version_names_llama_cpp_and_its_backend(shell: Shell) -> None:
    done = shell.run("--version")
    assert re.fullmatch(rf"llmrun {re.escape(__version__)} \(llama\.cpp \S.*, backend \S+\)\n", done.out), (
        done.out
    )


@pytest.mark.parametrize("args", [["-c", "import llmrun.cli.main"], ["-m", "llmrun", "--version"]])
def test_start_imports_nothing_heavy(args: list[str]) -> None:
    done = subprocess.run(
        [sys.executable, "-X", "importtime", *args], capture_output=True, text=True, timeout=60, check=True
    )
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "typer" in imported
    assert not imported & set(HEAVY)


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["rnu", "x"], "there is no command 'rnu'. did you mean 'run'?"),
        (["list", "--jsn"], "no such option: --jsn. did you mean --json?"),
        (["run"], "missing argument 'MODEL'. see: llmrun run --help"),
        (["logs", "-n", "many"], "see: llmrun logs --help"),
        (["--nonsense"], "no such option: --nonsense"),
        (["config", "gte"], "there is no command 'gte'. did you mean 'get'?"),
        (["config"], "missing command. see: llmrun config --help"),
        (["run", "m", "hi", "--max-tokens"], "requires an argument"),
        (["serve", "--port", "99999"], "invalid value for '--port': it is 65535 at most. see:"),
        (["bench", "m", "--times", "0"], "invalid value for '--times': it is 1 at least. see:"),
        (
            ["serve", "--log-format", "xml"],
            "invalid value for '--log-format': 'xml' is not one of 'text', 'json'",
        ),
        (["version"], "there is no command 'version'. did you mean '--version'?"),
        (["remove", "m"], "there is no command 'remove'. did you mean 'rm'?"),
        (["keys", "delete", "m"], "there is no command 'delete'. did you mean 'revoke'?"),
        (["config", "get", "colour"], "there is no setting 'colour'. see: llmrun config get"),
        (["config", "get", "keepalive"], "there is no setting 'keepalive'. did you mean 'keep_alive'?"),
    ],
)
def test_wrong_usage_is_one_line_and_exit_code_2(shell: Shell, args: list[str], says: str) -> None:
    done = shell.run(*args)
    assert done.code == 2
    assert done.out == ""
    assert done.err.startswith("error: ")
    assert done.err.count("\n") == 1
    assert says in done.err


def raising(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    """Make `llmrun list` fail with `error`."""

    def fail(_self: object) -> None:
        raise error

    monkeypatch.setattr("llmrun.store.Store.list", fail)


@pytest.mark.parametrize(
    ("error", "code", "line"),
    [
        (LlmrunError(UNKNOWN_MODEL, "no x", hint="pull it"), 3, "error: no x. pull it\n"),
        (LlmrunError(NO_MEMORY, "too big"), 4, "error: too big. use a smaller quant or a smaller --ctx\n"),
        (PermissionError(13, "Permission denied", "/x"), 1, "error: /x: Permission denied\n"),
        (ValueError("odd"), 1, "error: ValueError: odd. please report it, with --debug\n"),
        (KeyboardInterrupt(), 130, ""),
        (BrokenPipeError(), 141, ""),
    ],
)
def test_failure_becomes_one_line_and_its_exit_code(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, error: BaseException, code: int, line: str
) -> None:
    raising(error, monkeypatch)
    monkeypatch.setattr(boundary, "_let_go_of_streams", lambda: None)
    done = shell.run("list")
    assert (done.code, done.out, done.err) == (code, "", line)


@pytest.mark.parametrize("args", [["--debug", "list"], ["list", "--debug"]])
def test_debug_shows_the_traceback_before_the_line(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, args: list[str]
) -> None:
    raising(ValueError("odd"), monkeypatch)
    done = shell.run(*args)
    assert done.err.startswith("Traceback")
    assert done.err.endswith("error: ValueError: odd. please report it, with --debug\n")


@pytest.mark.parametrize("args", [["--quiet", "list"], ["list", "--quiet"]])
def test_quiet_leaves_out_notes(stocked: Shell, args: list[str]) -> None:
    done = stocked.run(*args)
    assert (done.code, done.out, done.err) == (0, "tiny:1m\n", "")


def test_quiet_leaves_out_notes_beside_json_too(shell: Shell) -> None:
    done = shell.run("list", "--quiet", "--json")
    assert (done.code, done.out, done.err) == (0, "[]\n", "")


def test_quiet_is_understood_after_a_command_of_a_command(shell: Shell) -> None:
    done = shell.run("config", "set", "keep_alive", "5s", "--quiet")
    assert (done.code, done.out, done.err) == (0, "", "")


def test_alias_is_the_command(stocked: Shell) -> None:
    assert stocked.run("ls").out == stocked.run("list").out


def test_help_works_beside_a_broken_config(shell: Shell) -> None:
    shell.env["LLMRUN_CTX"] = "plenty"
    assert shell.run("run", "--help").code == 0
    done = shell.run("config", "get")
    assert done.code == 2
    assert "LLMRUN_CTX" in done.err


def test_reader_that_is_gone_ends_the_command_quietly(shell: Shell) -> None:
    with shell.spawn("logs", "-f", stdin=subprocess.DEVNULL) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        log = shell.env["LLMRUN_HOME"] + "/logs/daemon.log"
        subprocess.run(["mkdir", "-p", log.rpartition("/")[0]], check=True)
        with open(log, "w") as file:  # noqa: PTH123 - as another program would
            file.write("x\n")
        assert process.wait(30) == 141
        assert process.stderr.read() == b""


def test_stdout_closed_from_the_start_is_no_crash(shell: Shell) -> None:
    command = f"exec {sys.executable} -m llmrun list >&-"
    done = subprocess.run(
        ["sh", "-c", command], env={**shell.env}, capture_output=True, text=True, timeout=30, check=False
    )
    assert done.returncode == 0
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("args", [["list"], ["list", "--json"], ["config", "path"]])
def test_stdout_that_takes_no_more_is_named(stocked: Shell, args: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = stocked.finish(*args, stdout=full)
    assert (done.code, done.err) == (
        1,
        "error: stdout cannot be written to: No space left on device. free some space, or write elsewhere\n",
    )


@pytest.mark.parametrize("args", [["--offline", "pull"], ["pull", "--offline"]])
def test_offline_flag_is_understood_everywhere_and_fetches_nothing(shell: Shell, args: list[str]) -> None:
    done = shell.run(*args, "https://127.0.0.1:9/x.gguf")
    assert done.code == 1
    assert "llmrun is offline, so https://127.0.0.1:9/x.gguf is not asked" in done.err
