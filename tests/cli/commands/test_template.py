from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.scripted import MODEL
from tests.cli.conftest import Shell

HI = [{"role": "user", "content": "Hi"}]
OPENED = "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"


def test_render_model_template_and_stdin_is_exactly_the_prompt(stocked: Shell) -> None:
    done = stocked.run("template", "render", MODEL, stdin=json.dumps(HI))
    assert (done.code, done.out, done.err) == (0, OPENED, "")


def test_render_file_argument_and_no_generation_prompt(stocked: Shell, tmp_path: Path) -> None:
    file = tmp_path / "m.json"
    file.write_text(json.dumps({"messages": HI}))
    done = stocked.run("template", "render", MODEL, str(file), "--no-generation-prompt")
    assert done.out == "<|im_start|>user\nHi<|im_end|>\n"


def test_render_template_file_needs_no_model_and_gets_every_variable(shell: Shell, tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text(
        "{{ bos_token }}{{ messages[0].content }}|{{ tools[0].name }}|{{ style }}|"
        "{{ add_generation_prompt }}{{ eos_token }}"
    )
    request = {
        "messages": HI,
        "tools": [{"name": "f"}],
        "chat_template_kwargs": {"style": "s"},
        "bos_token": "<b>",
        "eos_token": "<e>",
    }
    file = tmp_path / "m.json"
    file.write_text(json.dumps(request))
    done = shell.run("template", "render", "--template", str(template), str(file))
    assert done.out == "<b>Hi|f|s|True<e>"
    assert (
        shell.run("template", "render", "--template", str(template), stdin=json.dumps(request)).out
        == done.out
    )


def test_render_template_file_beside_a_model_takes_the_models_tokens(stocked: Shell, tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("{{ bos_token }}{{ eos_token }}\n")
    done = stocked.run("template", "render", MODEL, "-", "--template", str(template), stdin="[]")
    assert done.out == "<s></s>"


@pytest.mark.parametrize(
    ("args", "stdin", "code", "says"),
    [
        ([], "[]", 2, "there is no template"),
        ([MODEL, "a", "b"], "", 2, "too many arguments"),
        ([MODEL], "not json", 2, "the messages in stdin are not JSON"),
        ([MODEL], "", 2, "stdin is empty"),
        (["messages.json"], "", 2, "messages.json has no model before it"),
        ([MODEL], "3", 2, "neither a list nor an object"),
        ([MODEL], '{"messages": {}}', 2, "neither a list nor an object"),
        ([MODEL], '["x"]', 2, "not an object"),
        ([MODEL], '{"messages": [], "mesages": []}', 2, "'mesages' is not known"),
        ([MODEL], '{"messages": [], "tools": {}}', 2, "tools is {}, which has the wrong type"),
        ([MODEL, "no/file.json"], "", 2, "no/file.json"),
        (["nobody"], "[]", 3, "nobody"),
    ],
)
def test_render_wrong_input_is_refused_in_one_line(
    stocked: Shell, args: list[str], stdin: str, code: int, says: str
) -> None:
    done = stocked.run("template", "render", *args, stdin=stdin)
    assert (done.code, done.out) == (code, "")
    assert says in done.err
    assert done.err.count("\n") == 1


def test_render_template_that_refuses_the_messages_is_exit_code_1(shell: Shell, tmp_path: Path) -> None:
    template = tmp_path / "t.jinja"
    template.write_text("{{ raise_exception('no system turn') }}")
    done = shell.run("template", "render", "--template", str(template), stdin="[]")
    assert done.code == 1
    assert "no system turn" in done.err
