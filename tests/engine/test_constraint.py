"""Grammars on a tiny random model: what it says is valid, whatever it would rather have said."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

import gguf
import jsonschema
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from llmrun.chat.output_grammar import grammar_of
from llmrun.engine import GrammarRefused, Grammars
from llmrun.errors import LlmrunError
from llmrun.llama import Model
from llmrun.types import Failed, OutputFormat, SamplingParams, Text
from tests.support.events import joined_text
from tests.support.formats import EMOJI, Unforced, schema_format, schemas
from tests.support.models import GREEDY, Running, running, tiny_model
from tests.support.tiny import Shape

PROMPT = [30, 31, 32]
SHARED = settings(
    max_examples=200,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "maxLength": 5},
        "born": {"type": "integer", "minimum": 1900, "maximum": 2030},
        "kind": {"enum": ["cat", "llama"]},
    },
    "required": ["name", "born", "kind"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def work(model: Model):  # type: ignore[no-untyped-def]
    with running(model) as engine:
        yield engine


def _start(grammars: Grammars, wanted: OutputFormat, count: int = 1):  # type: ignore[no-untyped-def]
    return grammars.start(grammar_of(wanted), count)


@SHARED
@given(schema=schemas, seed=st.integers(0, 2**32 - 1), greedy=st.booleans())
def test_answers_validate_against_any_schema(
    work: Running, grammars: Grammars, schema: dict[str, object], seed: int, greedy: bool
) -> None:
    try:
        constraints = _start(grammars, schema_format(schema))
    except LlmrunError as error:  # a pattern and a length that exclude each other, say
        assume("cannot be compiled" not in str(error))
        raise
    params = SamplingParams(temperature=0 if greedy else 1.5)
    request = work.submit(PROMPT, params=params, seed=seed, max_tokens=450, constraints=constraints)
    work.wait()
    assert work.stopped(request).reason == "stop"
    said = joined_text(work.events[request])
    jsonschema.validate(json.loads(said), schema)
    assert said == said.strip()


PENALISED = SamplingParams(temperature=0, repeat_penalty=1.4, frequency_penalty=0.3)


@pytest.fixture(scope="module")
def steady(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    """A model whose rows are computed alike, however many of them are in a step."""
    loaded = tiny_model(tmp_path_factory.mktemp("steady"), Shape(quant=gguf.GGMLQuantizationType.Q8_0))
    yield loaded
    loaded.close()


@settings(SHARED, max_examples=60)
@given(schema=schemas, params=st.sampled_from([GREEDY, PENALISED]), n=st.integers(1, 3))
def test_greedy_text_is_the_same_without_forced_tokens(
    steady: Model, grammars: Grammars, schema: dict[str, object], params: SamplingParams, n: int
) -> None:
    try:
        started = [_start(grammars, schema_format(schema), n) for _ in range(2)]
    except LlmrunError:
        assume(False)
    said = []
    for constraints in (started[0], tuple(map(Unforced, started[1]))):
        # In few cells of a context of its own llama.cpp adds up in one order: no near tie falls otherwise.
        with running(steady, ctx=256) as work:
            request = work.submit(PROMPT, params=params, n=n, max_tokens=80, constraints=constraints)
            work.wait()
            texts = [joined_text(work.events[request], index) for index in range(n)]
            said.append((texts, work.finished(request).usage))
    assert said[0] == said[1]


def test_forced_tokens_save_steps_and_count_as_tokens(model: Model, grammars: Grammars) -> None:
    steps = []
    for wrap in (lambda constraint: constraint, Unforced):
        with running(model) as work:
            constraints = tuple(map(wrap, _start(grammars, schema_format(PERSON))))
            request = work.submit(PROMPT, max_tokens=200, constraints=constraints)
            work.wait()
            steps.append(work.engine.counters.steps)
            said = joined_text(work.events[request]).encode()
            assert len(said) - 12 <= work.finished(request).usage.completion <= len(said)
    assert steps[0] < 0.6 * steps[1]


@pytest.mark.parametrize("limit", range(1, 12))
def test_max_tokens_within_forced_text_is_exact(work: Running, grammars: Grammars, limit: int) -> None:
    wanted = schema_format({"const": "a long constant text"})
    request = work.submit(PROMPT, max_tokens=limit, constraints=_start(grammars, wanted))
    work.wait()
    assert work.finished(request).usage.completion == limit
    assert work.stopped(request).reason == "length"
    assert '"a long constant text"'.startswith(joined_text(work.events[request]))


def test_stop_string_within_forced_text_ends_before_it(work: Running, grammars: Grammars) -> None:
    wanted = schema_format({"const": "one two three"})
    request = work.submit(PROMPT, max_tokens=99, stop=("wo th",), constraints=_start(grammars, wanted))
    work.wait()
    assert joined_text(work.events[request]) == '"one t'
    assert work.stopped(request).stop_sequence == "wo th"


def test_context_full_within_forced_text_ends_with_length(model: Model, grammars: Grammars) -> None:
    wanted = schema_format({"const": "x" * 200})
    with running(model, ctx=256) as work:
        request = work.submit([40] * 200, max_tokens=None, constraints=_start(grammars, wanted))
        work.wait()
        assert work.stopped(request).reason == "length"
        assert work.finished(request).usage.completion == work.engine.ctx - 200


def test_logprobs_of_forced_tokens_are_the_models_own(work: Running, grammars: Grammars) -> None:
    wanted = schema_format({"const": "abc"})
    request = work.submit(PROMPT, max_tokens=20, logprobs=1, constraints=_start(grammars, wanted))
    work.wait()
    listed = [entry for event in work.events[request] if isinstance(event, Text) for entry in event.logprobs]
    assert b"".join(entry.raw for entry in listed) == b'"abc"'
    said = [entry.id for entry in listed]
    for count in range(1, len(said)):
        again = work.submit([*PROMPT, *said[:count]], max_tokens=1, logprobs=1)
        work.wait()
        (first,) = [e for event in work.events[again] if isinstance(event, Text) for e in event.logprobs]
        top = first.top[0]
        assert (top.id, top.logprob) == (
            listed[count].top[0].id,
            pytest.approx(listed[count].top[0].logprob, abs=1e-3),
        )
        assert listed[count].logprob <= top.logprob + 1e-3


def test_emoji_forced_by_an_enum_stream_without_replacement_characters(
    work: Running, grammars: Grammars
) -> None:
    for seed in range(6):
        constraints = _start(grammars, schema_format({"enum": EMOJI}))
        params = SamplingParams(temperature=2)
        request = work.submit(PROMPT, params=params, seed=seed, max_tokens=60, constraints=constraints)
        work.wait()
        pieces = [event.text for event in work.events[request] if isinstance(event, Text)]
        assert all("\N{REPLACEMENT CHARACTER}" not in piece for piece in pieces)
        assert json.loads("".join(pieces)) in EMOJI


def test_json_object_ends_at_its_brace(work: Running, grammars: Grammars) -> None:
    ended = 0
    for seed in range(12):
        constraints = _start(grammars, OutputFormat(kind="json_object"))
        params = SamplingParams(temperature=1.5, logit_bias={ord("}") + 5: 6, ord('"') + 5: 3})
        request = work.submit(PROMPT, params=params, seed=seed, max_tokens=300, constraints=constraints)
        work.wait()
        if work.stopped(request).reason == "stop":
            said = joined_text(work.events[request])
            assert isinstance(json.loads(said), dict)
            assert said.endswith("}")
            ended += 1
    assert ended


@pytest.mark.parametrize(
    ("wanted", "pattern"),
    [
        (OutputFormat(kind="regex", text=r"[a-c]{2}-\d{3}"), r"[a-c]{2}-[0-9]{3}"),
        (schema_format({"type": "string", "pattern": r"^\d{3}$"}), r"\"[0-9]{3}\""),
        (OutputFormat(kind="regex", text="^a/b\n?$"), "a/b\n?"),
        (OutputFormat(kind="lark", text='start: "x" NUM\nNUM: /[0-9]{2}/'), r"x[0-9]{2}"),
        (OutputFormat(kind="gbnf", text='root ::= ("yes" | "no") "!"'), r"(yes|no)!"),
        (OutputFormat(kind="choice", choices=("red\n", 'gr"een', "blå 🦙")), 'red\n|gr"een|blå 🦙'),
    ],
)
def test_other_notations_hold_for_the_whole_answer(
    work: Running, grammars: Grammars, wanted: OutputFormat, pattern: str
) -> None:
    for seed in range(3):
        params = SamplingParams(temperature=2)
        constraints = _start(grammars, wanted)
        request = work.submit(PROMPT, params=params, seed=seed, max_tokens=60, constraints=constraints)
        work.wait()
        assert re.fullmatch(pattern, joined_text(work.events[request]))
        assert work.stopped(request).reason == "stop"


def test_same_seed_says_the_same_and_answers_differ_by_index(work: Running, grammars: Grammars) -> None:
    wanted = schema_format({"type": "string", "minLength": 12, "maxLength": 12})
    said = []
    for _ in range(2):
        params = SamplingParams(temperature=2)
        constraints = _start(grammars, wanted, 2)
        request = work.submit(PROMPT, params=params, seed=5, n=2, max_tokens=60, constraints=constraints)
        work.wait()
        said.append([joined_text(work.events[request], index) for index in range(2)])
    assert said[0] == said[1]
    assert said[0][0] != said[0][1]


@pytest.mark.parametrize("typical_p", [1.0, 0.5])
def test_typical_sampling_keeps_to_the_grammar(work: Running, grammars: Grammars, typical_p: float) -> None:
    params = SamplingParams(temperature=1.0, typical_p=typical_p, top_k=0, repeat_penalty=1.3)
    constraints = _start(grammars, schema_format({"enum": ["alpha", "beta", "gamma"]}))
    request = work.submit(PROMPT, params=params, max_tokens=30, constraints=constraints)
    work.wait()
    assert json.loads(joined_text(work.events[request])) in ("alpha", "beta", "gamma")


def test_many_constrained_answers_in_few_cells_are_swapped_and_stay_valid(
    model: Model, grammars: Grammars
) -> None:
    schema = {"type": "array", "items": PERSON, "minItems": 3, "maxItems": 3}
    with running(model, ctx=256, parallel=4, slots=8) as work:
        requests = [
            work.submit(
                [50 + i] * 20, seed=i, max_tokens=400, constraints=_start(grammars, schema_format(schema))
            )
            for i in range(4)
        ]
        work.wait(4)
        assert work.engine.scheduler.preemptions
        for request in requests:
            jsonschema.validate(json.loads(joined_text(work.events[request])), schema)


def test_cancelled_midway_ends_once(work: Running, grammars: Grammars) -> None:
    wanted = schema_format({"type": "array", "items": {"type": "boolean"}, "minItems": 200})
    request = work.submit(PROMPT, max_tokens=450, constraints=_start(grammars, wanted))
    work.wait_for_text(request)
    work.engine.cancel(request)
    work.wait()
    last = work.events[request][-1]
    assert isinstance(last, Failed)
    assert last.error.code == "cancelled"


def test_grammar_past_a_limit_midway_fails_its_request_alone(work: Running, grammars: Grammars) -> None:
    many = {"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(800)}}
    constraints = _start(grammars, schema_format({**many, "additionalProperties": False}), 2)
    failing = work.submit(PROMPT, n=2, max_tokens=450, constraints=constraints)
    other = work.submit([*PROMPT, 33], max_tokens=12)
    work.wait(2)
    last = work.events[failing][-1]
    assert isinstance(last, Failed)
    assert (last.error.code, "too complex" in last.error.message) == ("invalid_request", True)
    assert sum(isinstance(event, Failed) for event in work.events[failing]) == 1
    assert work.finished(other).usage.completion == 12


def test_start_grammar_that_does_not_compile_says_why(grammars: Grammars) -> None:
    with pytest.raises(GrammarRefused, match="unknown name"):
        grammars.start(grammar_of(OutputFormat(kind="lark", text="start: nothing")), 1)


def test_start_keeps_what_was_compiled(grammars: Grammars) -> None:
    grammar = grammar_of(schema_format({"const": "kept"}))
    first, second = grammars.start(grammar, 1) + grammars.start(grammar, 1)
    first.accept(first.forced()[0])
    assert second.forced()[0] == 39
