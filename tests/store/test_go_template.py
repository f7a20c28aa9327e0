from __future__ import annotations

import pytest

from llmrun.chat.template import ChatTemplate
from llmrun.store.go_syntax import Untranslatable
from llmrun.store.go_template import looks_go, to_jinja

CHATML = """{{ if .System }}<|im_start|>system
{{ .System }}<|im_end|>
{{ end }}{{ if .Prompt }}<|im_start|>user
{{ .Prompt }}<|im_end|>
{{ end }}<|im_start|>assistant
{{ .Response }}<|im_end|>
"""
TALK = [
    {"role": "system", "content": "Be brief."},
    {"role": "user", "content": "Hi"},
    {"role": "assistant", "content": "Hello"},
    {"role": "user", "content": "Bye"},
]
CHATML_TALK = (
    "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\nHello"
    "<|im_end|>\n<|im_start|>user\nBye<|im_end|>\n<|im_start|>assistant\n"
)


def rendered(template: str, messages: list[dict[str, object]], **more: object) -> str:
    given = {"messages": messages, "bos_token": "", "eos_token": "", **more}
    return ChatTemplate(to_jinja(template)).render(given)


def test_to_jinja_one_exchange_is_repeated_for_the_conversation() -> None:
    assert rendered(CHATML, TALK) == CHATML_TALK


def test_to_jinja_template_without_response_ends_where_the_model_writes() -> None:
    assert rendered("[INST] {{ .System }} {{ .Prompt }} [/INST]", TALK) == (
        "[INST] Be brief. Hi [/INST]Hello[INST]  Bye [/INST]"
    )


def test_to_jinja_messages_are_ranged_over_with_trim_marks_variables_and_else_if() -> None:
    template = """{{- if .System }}<s>{{ .System }}
{{ end }}
{{- range $i, $_ := .Messages }}
{{- $last := eq (len (slice $.Messages $i)) 1 -}}
{{- if eq .Role "user" }}<u>
{{ .Content }}
{{ else if eq .Role "assistant" "bot" }}<a>
{{ .Content }}{{ if not $last }}|
{{ end }}
{{- end }}
{{- if and $last (ne .Role "assistant") }}<a>
{{ end }}
{{- end }}"""
    assert rendered(template, TALK) == "<s>Be brief.\n<u>\nHi\n<a>\nHello|\n<u>\nBye\n<a>\n"


def test_to_jinja_tools_and_calls_are_written_as_json() -> None:
    template = (
        "{{ range .Tools }}{{ . }}\n{{ end }}{{ range .Messages }}{{ .Content }}{{ range .ToolCalls }}"
        '{"name": "{{ .Function.Name }}", "arguments": {{ .Function.Arguments }}}{{ end }}{{ end }}'
    )
    call = {"function": {"name": "f", "arguments": {"a": 1}}}
    talk = [{"role": "user", "content": "x"}, {"role": "assistant", "content": "", "tool_calls": [call]}]
    tool = {"type": "function", "function": {"name": "f"}}
    assert rendered(template, talk, tools=[tool]) == (
        '{"type": "function", "function": {"name": "f"}}\nx{"name": "f", "arguments": {"a": 1}}'
    )


def test_to_jinja_messages_branch_leaves_out_the_old_form_beside_it() -> None:
    template = (
        "{{ if .Messages }}{{ range .Messages }}<{{ .Role }}>{{ .Content }}{{ end }}{{ else }}"
        "{{ .Prompt }}{{ end }}{{ .Response }}{{ if .Response }}<end>{{ end }}"
    )
    assert rendered(template, TALK[1:3]) == "<user>Hi<assistant>Hello"


def test_to_jinja_texts_keep_quotes_backslashes_and_comments_out() -> None:
    template = "{{/* a note */}}it's \\n 'so'\n\n{{ .Prompt }}{{ `raw \"text\"` }}"
    assert rendered(template, TALK[1:2]) == "it's \\n 'so'\n\nHiraw \"text\""


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ('{{ .Prompt }}{{ template "x" }}', "'template'"),
        ("{{ range .Messages }}{{ .Images }}{{ end }}", ".Images"),
        ("{{ .Prompt }}{{ currentDate }}", "currentDate"),
        ('{{ .Prompt }}{{ printf "%s" .System }}', "printf"),
        ("{{ if .Prompt }}", "never closed"),
        ("{{ .Prompt }}{{ end }}", "closes nothing"),
        ("{{ .System }}", "neither .Messages nor .Prompt"),
        ("{{ .Prompt }}{{ if .System }}{{ .Response }}{{ end }}", "inside an if"),
        ("{{ $x := .Prompt }}{{ $x = .System }}", "changes a variable"),
        ("{{ .Prompt }}{{ $y }}", "variable $y"),
        ("{{ .Prompt }}{{ eq (len .System }}", "never closed"),
        ("{{ .Prompt }}{{ ; }}", "cannot be read"),
        ("{{ .Prompt }}{{}}", "empty"),
    ],
)
def test_to_jinja_what_has_no_twin_is_refused_with_the_reason(template: str, reason: str) -> None:
    with pytest.raises(Untranslatable) as caught:
        to_jinja(template)
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("template", "go"),
    [
        ("{{ .Prompt }}", True),
        ("{{- range $i, $_ := .Messages }}", True),
        ("{{ if .System }}", True),
        ("{{ messages[0].content }}{{ ranges }}{{ enddate }}{{- tools }}", False),
        ("{% if x %}{{ '.' }}{% endif %}", False),
        ("{%- if x -%}{{ '{{ .Prompt }}' }}{% endif %}", False),
        ("{%- for block in parts %}{{- block.text }}{{ block }}{% endfor %}", False),
        ("{{ block['text'] }}{{ template.name }}", False),
    ],
)
def test_looks_go_tells_the_two_apart(template: str, go: bool) -> None:
    assert looks_go(template) is go
