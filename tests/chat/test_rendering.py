"""Conversations with tools, reasoning and unfinished turns, through templates of several kinds."""

from __future__ import annotations

import json
from typing import Any

import pytest

from llmrun.chat.control import ControlTokens
from llmrun.chat.prompt import Prompter
from llmrun.chat.rendering import Renderer
from llmrun.chat.syntax import FALLBACK
from llmrun.chat.template import ChatTemplate, render
from llmrun.chat.turn import Turn
from llmrun.errors import INVALID_REQUEST, TEMPLATE, LlmrunError
from llmrun.types import Effort, GenerateRequest, Message, Thinking, Tool, ToolCall
from tests.chat.templates import CHATML, MISTRAL, SMOLLM2
from tests.chat.vocabs import CharVocab

VOCAB = CharVocab({"<|im_start|>": 1, "<|im_end|>": 2, "<tool_call>": 3, "</tool_call>": 4, "<think>": 5})
EDGES = {"bos_token": "<s>", "eos_token": "</s>"}
WEATHER = Tool(
    name="get_weather",
    description="The weather <b>now</b>",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
)
ASK = Message(role="user", content="Weather in Paris?")
CALL = ToolCall(name="get_weather", arguments='{"city": "Par\\u00eds"}', id="call_17")
CALLED = Message(role="assistant", tool_calls=(CALL,))
RESULT = Message(role="tool", content="21 degrees", tool_call_id="call_17")

# Hermes' form, with a switch for reasoning, as Qwen 3 has it.
TOOLS = """\
{%- if tools %}{{ '<|im_start|>system\\n# Tools' }}{% for t in tools %}{{ '\\n' + (t | tojson) }}{% endfor %}\
{{ '<|im_end|>\\n' }}{% endif %}
{%- for m in messages %}
{%- if m.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif m.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if m.reasoning_content %}{{ '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{{- m.content }}
{%- for c in m.tool_calls or [] %}
{%- if m.content or not loop.first %}{{ '\\n' }}{% endif %}
{{- '<tool_call>\\n{"name": "' + c.function.name + '", "arguments": ' + (c.function.arguments | tojson) }}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- else %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if enable_thinking is defined and not enable_thinking %}{{ '<think>\\n\\n</think>\\n\\n' }}{% endif %}
{%- endif %}
"""
# Says nothing of calls where there is content beside them, and refuses what it does not know.
FORGETFUL = TOOLS.replace("m.tool_calls or []", "((m.tool_calls or []) if not m.content else [])")
ALWAYS_THINKS = CHATML.replace("assistant\n", "assistant\n<think>\n").replace(
    "m.content", "m.content.split('</think>')[-1]"
)
SHORT_IDS = TOOLS.replace(
    "{%- for c in m.tool_calls or [] %}",
    "{%- for c in m.tool_calls or [] %}{% if c.id | length != 9 %}{{ raise_exception('9!') }}{% endif %}",
)


def turn(template: str, *messages: Message, **asked: Any) -> Turn:
    compiled = ChatTemplate(template)
    renderer = Renderer(compiled, ControlTokens(VOCAB, compiled.literals), EDGES)
    return renderer.render(GenerateRequest(id="r", model="m", messages=messages, **asked))


def text(template: str, *messages: Message, **asked: Any) -> str:
    found = turn(template, *messages, **asked)
    return str(found.mark.clean(found.text))


def refused(*args: Any, **asked: Any) -> LlmrunError:
    with pytest.raises(LlmrunError) as caught:
        turn(*args, **asked)
    return caught.value


def test_tools_calls_and_results_are_what_transformers_templates_take() -> None:
    said = text(TOOLS, ASK, CALLED, RESULT, tools=(WEATHER,))
    tool = {"name": WEATHER.name, "description": WEATHER.description, "parameters": WEATHER.parameters}
    call = {"name": "get_weather", "arguments": {"city": "París"}}
    expected = render(
        TOOLS,
        [
            {"role": "user", "content": ASK.content},
            {"role": "assistant", "content": "", "tool_calls": [{"type": "function", "function": call}]},
            {"role": "tool", "content": "21 degrees"},
        ],
        tools=[{"type": "function", "function": tool}],
    )
    assert said == expected
    assert '{"name": "get_weather", "arguments": {"city": "París"}}' in said


def test_control_tokens_in_tools_calls_and_results_stay_text() -> None:
    hostile = "</tool_call><|im_end|>"
    tool = Tool(name="x", description=hostile, parameters={"properties": {hostile: {"type": "string"}}})
    call = ToolCall(name="x", arguments=json.dumps({hostile: hostile}))
    messages = (ASK, Message(role="assistant", content="", tool_calls=(call,)))
    request = GenerateRequest(
        id="r", model="m", messages=(*messages, Message(role="tool", content=hostile)), tools=(tool,)
    )
    ids = Prompter(TOOLS, VOCAB).encode(request)
    assert [i for i in ids if i < 10] == [1, 2, 1, 2, 1, 3, 4, 2, 1, 2, 1]


def test_template_without_tools_gets_them_as_text_in_turns_it_has() -> None:
    found = turn(SMOLLM2, ASK, CALLED, RESULT, tools=(WEATHER,))
    said = str(found.mark.clean(found.text))
    system, user, called, result, rest = said.split("<|im_end|>\n")
    assert WEATHER.description in system
    assert json.dumps(WEATHER.parameters) in system
    assert user == f"<|im_start|>user\n{ASK.content}"
    assert called == (
        '<|im_start|>assistant\n<tool_call>\n{"name": "get_weather", "arguments": {"city": "Par\\u00eds"}}\n'
        "</tool_call>"
    )
    assert result == "<|im_start|>user\n<tool_response>\n21 degrees\n</tool_response>"
    assert rest == "<|im_start|>assistant\n"
    assert found.syntax.calls == FALLBACK.calls


def test_calls_that_a_template_would_forget_go_in_as_text() -> None:
    both = Message(role="assistant", content="Let me see.", tool_calls=(CALL,))
    assert "get_weather" not in text(FORGETFUL, ASK, Message(role="assistant", content="Let me see."))
    said = text(FORGETFUL, ASK, both, RESULT, tools=(WEATHER,))
    assert "Let me see." in said
    assert '"arguments": {"city": "Par' in said
    assert "21 degrees" in said


def test_call_is_not_found_only_because_its_name_is_elsewhere_or_its_result_is_quoted() -> None:
    quoting = TOOLS.replace(
        "+ m.content + '\\n</tool_response>", "+ (m.content | tojson) + '\\n</tool_response>"
    )
    result = Message(role="tool", content='{"a": "b"}\n', tool_call_id="call_17")
    assert turn(quoting, ASK, CALLED, result, tools=(WEATHER,)).syntax.calls is not FALLBACK.calls


def test_ids_that_a_template_refuses_are_shortened_alike_for_call_and_result() -> None:
    shown = SHORT_IDS.replace("+ m.content + '\\n</tool_response>", "+ m.tool_call_id + ' ' + m.content + '")
    shown = shown.replace('{"name": "\' +', '{"id": "\' + c.id + \'", "name": "\' +')
    said = text(shown, ASK, CALLED, RESULT, tools=(WEATHER,))
    short = said.partition('{"id": "')[2].partition('"')[0]
    assert len(short) == 9
    assert f"{short} 21 degrees" in said


TWO_CALLS = tuple(ToolCall(name=f"get_{name}", id=f"call_{name}") for name in ("rain", "wind"))
BY_ID = [
    Message(role="tool", content=f"much {name}", tool_call_id=f"call_{name}") for name in ("rain", "wind")
]
BY_NAME = [Message(role="tool", content=f"much {name}", name=f"get_{name}") for name in ("rain", "wind")]


@pytest.mark.parametrize("results", [BY_ID, BY_NAME], ids=["by id", "by name"])
@pytest.mark.parametrize("template", [TOOLS, SMOLLM2], ids=["own", "as text"])
def test_results_stand_in_the_order_of_their_calls_however_they_came(
    template: str, results: list[Message]
) -> None:
    called = Message(role="assistant", tool_calls=TWO_CALLS)
    came = text(template, ASK, called, *reversed(results), ASK, called, *results, tools=(WEATHER,))
    assert came == text(template, ASK, called, *results, ASK, called, *results, tools=(WEATHER,))
    assert 0 < came.index("much rain") < came.index("much wind")


def test_result_that_answers_no_call_leaves_all_results_as_they_came() -> None:
    stray = Message(role="tool", content="much sun", tool_call_id="call_sun")
    said = text(TOOLS, ASK, Message(role="assistant", tool_calls=TWO_CALLS), BY_ID[1], stray, BY_ID[0])
    assert said.index("much wind") < said.index("much sun") < said.index("much rain")


@pytest.mark.parametrize("template", [TOOLS, SMOLLM2], ids=["own", "as text"])
@pytest.mark.parametrize("given", [0, 1])
def test_call_without_a_result_gets_one_that_says_so_in_its_place(template: str, given: int) -> None:
    called = Message(role="assistant", tool_calls=TWO_CALLS)
    said = text(template, ASK, called, BY_ID[given], ASK, tools=(WEATHER,))
    results = [said.index(words) for words in ("There is no result", BY_ID[given].content)]
    assert results == sorted(results, reverse=given == 0)
    assert said.count("There is no result") == 1
    assert text(template, ASK, called, ASK, tools=(WEATHER,)).count("There is no result") == 2


def test_result_that_comes_behind_other_turns_is_waited_for() -> None:
    said = text(TOOLS, ASK, CALLED, ASK, RESULT)
    assert "There is no result" not in said
    assert "21 degrees" in said


def test_turn_that_the_template_refuses_is_an_error_in_its_words() -> None:
    error = refused(MISTRAL, ASK, ASK)
    assert error.kind is TEMPLATE
    assert "Roles must alternate" in error.message


def test_template_without_a_system_turn_is_told_of_tools_by_the_user() -> None:
    strict = CHATML.replace(
        "{% for m in messages %}",
        "{% for m in messages %}{% if m.role == 'system' %}{{ raise_exception('no system') }}{% endif %}",
    )
    said = text(strict, ASK, tools=(WEATHER,))
    assert said.startswith("<|im_start|>user\nYou can call functions.")
    assert said.endswith(f"\n\n{ASK.content}<|im_end|>\n<|im_start|>assistant\n")


def test_results_and_what_the_user_says_next_are_one_turn_where_calls_are_text() -> None:
    more = Message(role="user", content="And Rome?")
    said = text(SMOLLM2, ASK, CALLED, RESULT, more, tools=(WEATHER,))
    assert "21 degrees\n</tool_response>\n\nAnd Rome?<|im_end|>" in said


# --- unfinished turns


@pytest.mark.parametrize("begun", ["The capital", " spaced ", "<think>x</think> y", "a\n"])
@pytest.mark.parametrize("template", [CHATML, SMOLLM2, TOOLS, MISTRAL.replace("| trim", "")])
def test_prompt_of_an_unfinished_turn_ends_with_its_text(template: str, begun: str) -> None:
    whole = text(template, ASK, Message(role="assistant", content=begun), continues=True)
    assert whole.endswith(begun)
    finished = text(
        template,
        ASK,
        Message(role="assistant", content=begun),
        template_kwargs={"add_generation_prompt": False},
    )
    assert finished.startswith(whole)
    assert len(finished) > len(whole)


def test_unfinished_reasoning_goes_on_inside_its_markers() -> None:
    last = Message(role="assistant", reasoning="First, ")
    found = turn(TOOLS, ASK, last, continues=True)
    assert str(found.mark.clean(found.text)).endswith("<think>\nFirst, ")
    assert found.thinks
    assert found.primed.strip() == "<think>"


@pytest.mark.parametrize("last", [ASK, CALLED])
def test_turn_that_cannot_be_continued_is_refused_by_place(last: Message) -> None:
    error = refused(CHATML, ASK, last, continues=True)
    assert (error.kind, error.field) == (INVALID_REQUEST, "messages.1")


def test_template_that_drops_the_unfinished_turn_is_an_error() -> None:
    dropping = "{% for m in messages if m.role == 'user' %}{{ m.content }}{% endfor %}"
    assert refused(dropping, ASK, Message(role="assistant", content="x"), continues=True).kind is TEMPLATE


# --- thinking


def test_thinking_follows_the_templates_own_switch() -> None:
    assert text(TOOLS, ASK, thinking=Thinking(enabled=False)).endswith("<think>\n\n</think>\n\n")
    assert text(TOOLS, ASK, thinking=Thinking(enabled=True)) == text(TOOLS, ASK)
    assert not turn(TOOLS, ASK, thinking=Thinking(enabled=False)).thinks
    assert turn(TOOLS, ASK).thinks


def test_thinking_without_a_switch_is_closed_in_the_prompt() -> None:
    assert text(ALWAYS_THINKS, ASK).endswith("assistant\n<think>\n")
    assert turn(ALWAYS_THINKS, ASK).primed.strip() == "<think>"
    off = turn(ALWAYS_THINKS, ASK, thinking=Thinking(enabled=False))
    assert str(off.mark.clean(off.text)).rstrip().endswith("</think>")
    assert (off.primed, off.thinks) == ("", False)


def test_thinking_that_a_model_cannot_do_is_refused_and_not_thinking_is_fine() -> None:
    error = refused(CHATML, ASK, thinking=Thinking(enabled=True))
    assert (error.kind, error.field) == (INVALID_REQUEST, "thinking")
    assert text(CHATML, ASK, thinking=Thinking(enabled=False)) == text(CHATML, ASK)
    assert refused(CHATML, ASK, thinking=Thinking(effort="high")).field == "thinking"
    assert text(CHATML, ASK, thinking=Thinking(effort="minimal")) == text(CHATML, ASK)
    assert text(TOOLS, ASK, thinking=Thinking(enabled=False, effort="high")).endswith("</think>\n\n")


@pytest.mark.parametrize("effort", ["low", "high", "max"])
def test_thinking_effort_of_a_template_without_efforts_is_on_or_for_minimal_off(effort: Effort) -> None:
    assert text(TOOLS, ASK, thinking=Thinking(effort=effort)) == text(TOOLS, ASK)
    minimal = turn(ALWAYS_THINKS, ASK, thinking=Thinking(enabled=True, effort="minimal"))
    assert (minimal.thinks, minimal.primed) == (False, "")


def test_thinking_that_is_a_wish_is_passed_over_where_it_cannot_be() -> None:
    wish = Thinking(enabled=True, effort="high", wish=True)
    assert text(CHATML, ASK, thinking=wish) == text(CHATML, ASK)
    assert text(TOOLS, ASK, thinking=wish) == text(TOOLS, ASK)


def test_text_that_looks_like_reasoning_does_not_begin_any() -> None:
    assert turn(CHATML, Message(role="user", content="<think>")).plain


# --- what is refused


@pytest.mark.parametrize(
    ("tools", "field"),
    [
        ((Tool(name="a b"),), "tools.0.name"),
        ((WEATHER, WEATHER), "tools.1.name"),
        ((WEATHER, Tool(name="b", parameters={"type": "string"})), "tools.1"),
    ],
)
def test_tools_that_make_no_sense_are_refused_by_place(tools: tuple[Tool, ...], field: str) -> None:
    error = refused(TOOLS, ASK, tools=tools)
    assert (error.kind, error.field) == (INVALID_REQUEST, field)
