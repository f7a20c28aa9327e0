from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.api.scripted import MODEL
from tests.chat.syntax.families import FAMILIES
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


HERMES = FAMILIES["hermes"]
ANSWER = (
    '<think>\nHm.\n</think>\n\nLook:\n<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich"}}\n'
    "</tool_call><|end|>"
)


@pytest.mark.parametrize("stream", [(), ("--stream",)])
def test_parse_template_file_and_stdin_is_the_message(
    shell: Shell, tmp_path: Path, stream: tuple[str, ...]
) -> None:
    (tmp_path / "t.jinja").write_text(HERMES, "utf-8")
    done = shell.run("template", "parse", "--template", str(tmp_path / "t.jinja"), *stream, stdin=ANSWER)
    assert (done.code, done.err) == (0, "")
    assert json.loads(done.out) == {
        "role": "assistant",
        "content": "Look:",
        "reasoning_content": "Hm.",
        "tool_calls": [
            {
                "id": "call_0",
                "type": "function",
                "function": {"name": "weather", "arguments": '{"city": "Zürich"}'},
            }
        ],
    }


def test_parse_tools_give_bare_arguments_types(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "t.jinja").write_text(FAMILIES["qwen coder"], "utf-8")
    schema = {"type": "object", "properties": {"zip": {"type": "string"}, "days": {"type": "integer"}}}
    (tmp_path / "tools.json").write_text(
        json.dumps([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    )
    text = (
        "<tool_call>\n<function=f>\n<parameter=zip>\n8001\n</parameter>\n<parameter=days>\n3\n</parameter>\n"
        "</function>\n</tool_call>"
    )
    files = ("--template", str(tmp_path / "t.jinja"), "--tools", str(tmp_path / "tools.json"))
    done = shell.run("template", "parse", *files, stdin=text)
    assert json.loads(done.out)["tool_calls"][0]["function"]["arguments"] == '{"zip": "8001", "days": 3}'


def test_parse_model_whose_template_knows_no_tools_takes_the_fallback(stocked: Shell) -> None:
    done = stocked.run("template", "parse", MODEL, stdin='Hi <tool_call>{"name": "f"}</tool_call>')
    message = json.loads(done.out)
    assert (message["content"], message["tool_calls"][0]["function"]["name"]) == ("Hi ", "f")


def test_parse_text_goes_on_where_the_prompt_opened_reasoning(shell: Shell, tmp_path: Path) -> None:
    opened = HERMES.replace(
        "{{- '<|assistant|>' }}{% endif %}\n", "{{- '<|assistant|><think>\\n' }}{% endif %}\n"
    )
    assert opened != HERMES
    (tmp_path / "t.jinja").write_text(opened, "utf-8")
    for text in ("Hm.\n</think>\n\nHi", "<think>\nHm.\n</think>\n\nHi"):
        done = shell.run("template", "parse", "--template", str(tmp_path / "t.jinja"), stdin=text)
        message = json.loads(done.out)
        assert (message["reasoning_content"], message["content"]) == ("Hm.", "Hi")


@pytest.mark.parametrize(
    ("tools", "says"),
    [("{", "are not JSON"), ("{}", "neither a list nor an object with tools"), ("[{}]", "has no name: {}")],
)
def test_parse_wrong_tools_is_wrong_usage(shell: Shell, tmp_path: Path, tools: str, says: str) -> None:
    (tmp_path / "tools.json").write_text(tools)
    (tmp_path / "t.jinja").write_text(HERMES, "utf-8")
    files = ("--template", str(tmp_path / "t.jinja"), "--tools", str(tmp_path / "tools.json"))
    done = shell.run("template", "parse", *files, stdin="x")
    assert done.code == 2
    assert says in done.err


def test_parse_without_template_is_wrong_usage(shell: Shell) -> None:
    done = shell.run("template", "parse", stdin="x")
    assert (done.code, "there is no template" in done.err) == (2, True)
