"""Tools, formats and reasoning governing a tiny random model, whatever it would rather say."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import jsonschema
import pytest

from llmrun.chat.prompt import Prompter
from llmrun.engine import Grammars
from llmrun.errors import INVALID_REQUEST, LlmrunError
from llmrun.llama import Model, guide_tokenizer
from llmrun.runner.answers import Answers
from llmrun.runner.governing import Governing
from llmrun.types import (
    CallArguments,
    CallStarted,
    Event,
    GenerateRequest,
    Message,
    Options,
    Reasoning,
    SamplingParams,
    Stopped,
    Text,
    Thinking,
    Tool,
    ToolChoice,
)
from tests.chat.templates import CHATML
from tests.chat.test_rendering import ALWAYS_THINKS, CALLED, RESULT, TOOLS
from tests.support.formats import schema_format
from tests.support.models import Running, running, tiny_model

ASK = (Message(role="user", content="x"),)
WEATHER = Tool(
    name="get_weather",
    parameters={
        "type": "object",
        "properties": {
            "city": {"type": "string", "maxLength": 5},
            "unit": {"enum": ["c", "f"]},
            "days": {"type": "integer", "minimum": 1, "maximum": 7},
        },
        "required": ["city", "unit"],
    },
)
NOW = Tool(name="now")
SCHEMAS = {tool.name: tool.parameters or {"maxProperties": 0} for tool in (WEATHER, NOW)}
JSON_CALL = (
    '<tool_call>\\n{"name": "\' + c.function.name + \'", "arguments": \' + (c.function.arguments | tojson) }}'
)
EACH = "{% for k, v in c.function.arguments.items() %}"
PYTHON = TOOLS.replace(
    JSON_CALL,
    f"<tool_call>[' + c.function.name + '(' }}}}{EACH}"
    "{{ k ~ '=' ~ (v | tojson) }}{{ ', ' if not loop.last }}{% endfor %}{{ ')' }}",
).replace("'}\\n</tool_call>'", "']</tool_call>'")
TAGGED = TOOLS.replace(
    JSON_CALL,
    f"<tool_call>\\n<function=' + c.function.name + '>\\n' }}}}{EACH}"
    "{{ '<parameter=' ~ k ~ '>\\n' ~ (v if v is string else (v | tojson)) ~ '\\n</parameter>\\n' }}"
    "{% endfor %}",
).replace("'}\\n</tool_call>'", "'</function>\\n</tool_call>'")
SPECIAL = TOOLS.replace("</tool_call>", "</s>").replace("<tool_call>", "<s>")  # control tokens, one that ends
TEMPLATES = {"fallback": CHATML, "json": TOOLS, "python": PYTHON, "tagged": TAGGED, "special": SPECIAL}


class Runner:
    """The runner's work on one request after another, in this process."""

    def __init__(self, model: Model, work: Running) -> None:
        self.model = model
        self.work = work
        self.grammars = Grammars(lambda: guide_tokenizer(model.vocab))

    def ask(
        self, template: str = CHATML, *, params: SamplingParams | None = None, **asked: Any
    ) -> list[Event]:
        request = GenerateRequest(id="r", model="m", **{"messages": ASK, **asked})
        prompt = Prompter(template, self.model.vocab).prompt(request)
        turn, answers = prompt.turn, Answers()
        assert turn is not None
        shown = turn.shown(self.model.vocab)
        governing = Governing(request, turn, self.model.vocab, self.grammars, shown)
        name = self.work.submit(
            prompt.ids,
            n=request.n,
            params=params or SamplingParams(temperature=1.0),
            max_tokens=request.options.max_tokens or 400,
            constraints=governing.guides(),
            shown=shown,
            stop=governing.stops,
            seed=request.options.seed or 0,
        )
        if not turn.plain:
            answers.parse(
                name, lambda: turn.parser(request), request.n, parallel=request.tool_choice.parallel
            )
        self.work.wait()
        return [e for _, e in answers.read([(name, event) for event in self.work.events[name]])]


@pytest.fixture(scope="module")
def runner(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runner]:
    model = tiny_model(tmp_path_factory.mktemp("model"))
    with running(model, ctx=2048) as work:
        yield Runner(model, work)
    model.close()


def calls(events: list[Event], index: int = 0) -> list[tuple[str, str]]:
    started = [e for e in events if isinstance(e, CallStarted) and e.index == index]
    return [
        (
            call.name,
            "".join(
                e.text
                for e in events
                if isinstance(e, CallArguments) and (e.index, e.call) == (index, call.call)
            ),
        )
        for call in started
    ]


def text(events: list[Event], kind: type[Text] | type[Reasoning] = Text, index: int = 0) -> str:
    return "".join(e.text for e in events if isinstance(e, kind) and e.index == index)


def reason(events: list[Event], index: int = 0) -> str:
    return next(e.reason for e in events if isinstance(e, Stopped) and e.index == index)


@pytest.mark.parametrize("template", TEMPLATES)
def test_required_call_is_valid_in_every_form(runner: Runner, template: str) -> None:
    for seed in range(4):
        events = runner.ask(
            TEMPLATES[template],
            tools=(WEATHER, NOW),
            tool_choice=ToolChoice(mode="required", parallel=False),
            thinking=Thinking(enabled=False),
            options=Options(seed=seed),
            n=2,
        )
        for index in range(2):
            ((name, arguments),) = calls(events, index)
            jsonschema.validate(json.loads(arguments), SCHEMAS[name])
            assert (text(events, index=index), reason(events, index)) == ("", "tool_calls")


def test_named_tool_is_the_one_that_is_called(runner: Runner) -> None:
    for seed in range(4):
        choice = ToolChoice(mode="required", name="now", parallel=False)
        events = runner.ask(tools=(WEATHER, NOW), tool_choice=choice, options=Options(seed=seed))
        assert calls(events) == [("now", "{}")]


@pytest.mark.parametrize("limit", [3, 12, 30, 60])
def test_required_call_cut_by_the_limit_says_so_and_leaks_nothing(runner: Runner, limit: int) -> None:
    events = runner.ask(
        tools=(WEATHER,), tool_choice=ToolChoice(mode="required"), options=Options(max_tokens=limit)
    )
    assert (text(events), reason(events)) == ("", "length")


NONE_MAY: dict[str, dict[str, Any]] = {
    "choice of none": {"messages": ASK, "tools": (WEATHER,), "tool_choice": ToolChoice(mode="none")},
    "earlier calls alone": {"messages": (*ASK, CALLED, RESULT)},
}


@pytest.mark.parametrize("asked", NONE_MAY)
@pytest.mark.parametrize("template", ["fallback", "json", "python", "tagged"])
def test_no_call_can_begin_where_none_may(runner: Runner, template: str, asked: str) -> None:
    request = GenerateRequest(id="r", model="m", **NONE_MAY[asked])
    turn = Prompter(TEMPLATES[template], runner.model.vocab).prompt(request).turn
    assert turn is not None
    assert turn.syntax.calls is not None
    (grammar,) = Governing(request, turn, runner.model.vocab, runner.grammars, {})._answers()
    marker = turn.syntax.calls.marker.encode()
    assert grammar.enter(b"Of course: " + marker[:-1])
    assert not grammar.enter(marker[-1:])
    assert grammar.enter(b"?" + marker[:-1])


OPENER = SamplingParams(temperature=1.0, logit_bias={1: 9.0})  # a model that wants to call


def test_no_call_and_no_marker_comes_where_none_may(runner: Runner) -> None:
    choice = ToolChoice(mode="none")
    for seed in range(3):
        asked = {"params": OPENER, "tools": (WEATHER,), "options": Options(seed=seed, max_tokens=50)}
        events = runner.ask(SPECIAL, tool_choice=choice, **asked)
        assert not calls(events)
        assert "<s>" not in text(events)
        assert calls(runner.ask(SPECIAL, **asked))  # it does where it may


def test_call_of_the_models_own_choice_keeps_to_the_schema(runner: Runner) -> None:
    for seed in range(6):
        events = runner.ask(SPECIAL, params=OPENER, tools=(WEATHER, NOW), options=Options(seed=seed))
        made = calls(events)
        assert made
        for name, arguments in made[: len(made) - (reason(events) == "length")]:
            jsonschema.validate(json.loads(arguments), SCHEMAS[name])
        assert "<s>" not in text(events)


def test_one_call_at_most_where_calls_may_not_be_parallel(runner: Runner) -> None:
    for seed in range(4):
        events = runner.ask(
            SPECIAL,
            params=OPENER,
            tools=(NOW,),
            tool_choice=ToolChoice(parallel=False),
            options=Options(seed=seed),
        )
        assert calls(events) == [("now", "{}")]
        assert reason(events) == "tool_calls"


def test_format_or_call_is_a_free_choice(runner: Runner) -> None:
    wanted = schema_format({"enum": ["yes", "no"]})
    kinds = set()
    for seed in range(12):
        events = runner.ask(
            tools=(NOW,), output_format=wanted, options=Options(seed=seed),
            params=SamplingParams(temperature=3.0),
        )  # fmt: skip
        if made := calls(events):
            assert (made, text(events), reason(events)) == ([("now", "{}")], "", "tool_calls")
        else:
            assert json.loads(text(events)) in ("yes", "no")
        kinds.add(bool(made))
    assert kinds == {True, False}


def test_budget_ends_reasoning_and_the_format_holds_behind_it(runner: Runner) -> None:
    events = runner.ask(
        ALWAYS_THINKS, thinking=Thinking(budget=7), output_format=schema_format({"enum": ["yes", "no"]}), n=2
    )
    for index in range(2):
        assert text(events, Reasoning, index)
        assert json.loads(text(events, index=index)) in ("yes", "no")


def test_budget_of_none_thinks_nothing(runner: Runner) -> None:
    events = runner.ask(ALWAYS_THINKS, thinking=Thinking(budget=0), options=Options(max_tokens=20))
    assert text(events, Reasoning).strip() == ""
    assert "think" not in text(events)


def test_required_call_comes_behind_the_reasoning(runner: Runner) -> None:
    events = runner.ask(
        ALWAYS_THINKS,
        thinking=Thinking(budget=7),
        tools=(NOW,),
        tool_choice=ToolChoice(mode="required", parallel=False),
    )
    assert text(events, Reasoning)
    assert calls(events) == [("now", "{}")]


def test_format_goes_on_from_what_is_begun(runner: Runner) -> None:
    messages = (*ASK, Message(role="assistant", content='{ "a":  "b '))
    schema = {"type": "object", "properties": {"a": {"type": "string", "maxLength": 6}}, "required": ["a"]}
    events = runner.ask(messages=messages, continues=True, output_format=schema_format(schema))
    jsonschema.validate(json.loads(messages[-1].content + text(events)), schema)


@pytest.mark.parametrize(
    ("tool", "choice", "keyword"),
    [
        (Tool(name="f", parameters={"properties": {"a": {"not": {}}}}), "required", "not"),
        (Tool(name="f", parameters={"properties": {"a": {"not": {}}}}, strict=True), "auto", "not"),
        (
            Tool(name="f", parameters={"properties": {"a": {"type": "string", "pattern": "("}}}),
            "required",
            "pattern",
        ),
    ],
)
def test_schema_that_cannot_be_kept_to_is_refused_by_place(
    runner: Runner, tool: Tool, choice: Any, keyword: str
) -> None:
    with pytest.raises(LlmrunError) as caught:
        runner.ask(tools=(NOW, tool), tool_choice=ToolChoice(mode=choice))
    error = caught.value
    assert (error.kind, error.field, error.details["keyword"]) == (INVALID_REQUEST, "tools.1", keyword)
    assert error.details["pointer"] == "#/properties/a"


def test_loose_tool_whose_schema_cannot_be_kept_to_may_still_be_called(runner: Runner) -> None:
    loose = Tool(name="f", parameters={"properties": {"a": {"not": {}}}})
    assert runner.ask(tools=(loose,), options=Options(max_tokens=5))
