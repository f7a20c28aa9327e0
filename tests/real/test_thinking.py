"""A model that thinks, in every dialect: the default one under a template that has it think first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anthropic
import ollama
import openai
import pytest

from llmrun.config import DEFAULT_MODEL
from tests.real.daemons import Daemon, linked_home

pytestmark = [pytest.mark.real, pytest.mark.timeout(180)]

MODEL = "thinker"
HI: Any = [{"role": "user", "content": "Is the sea salty?"}]
BUDGET, LIMIT = 24, 40
TEMPLATE = """\
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.reasoning_content %}<think>
{{ m.reasoning_content }}
</think>

{% endif %}{{ m.content }}<|im_end|>
{% endfor %}
{%- if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% else %}<think>
{% endif %}{% endif %}"""


@pytest.fixture(scope="module")
def daemon(home: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Its model ends no answer and no thought by itself: what ends them are limits."""
    running = Daemon(linked_home(home, tmp_path_factory.mktemp("thinker")), LLMRUN_CTX="2048")
    text = (
        f'FROM {DEFAULT_MODEL}\nPARAMETER temperature 0\nPARAMETER ignore_eos true\nTEMPLATE """{TEMPLATE}"""'
    )
    made = running.http.post("/api/create", json={"model": MODEL, "modelfile": text, "stream": False})
    assert made.status_code == 200, made.text
    yield running
    running.close()


@pytest.fixture(scope="module")
def client(daemon: Daemon) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{daemon.url}/v1", api_key="none", max_retries=0, timeout=100) as made:
        yield made


def count(daemon: Daemon, text: str) -> int:
    return len(daemon.http.post("/tokenize", json={"model": MODEL, "content": text}).json()["tokens"])


def budgeted(client: openai.OpenAI, **fields: Any) -> Any:
    extra = {"thinking_budget_tokens": BUDGET, **fields.pop("extra_body", {})}
    asked = {"model": MODEL, "messages": HI, "max_tokens": LIMIT, "seed": 1, "extra_body": extra, **fields}
    return client.chat.completions.create(**asked)


def test_budget_ends_thinking_and_an_answer_follows(daemon: Daemon, client: openai.OpenAI) -> None:
    reply = budgeted(client)
    message = reply.choices[0].message
    assert 0 < count(daemon, message.reasoning_content) <= BUDGET
    assert message.content
    assert "think>" not in message.reasoning_content + message.content
    assert reply.usage.completion_tokens == LIMIT
    assert BUDGET < reply.usage.completion_tokens_details.reasoning_tokens < LIMIT


def test_reasoning_format_none_is_the_same_text_with_its_tags(client: openai.OpenAI) -> None:
    apart = budgeted(client).choices[0].message
    inline = budgeted(client, extra_body={"reasoning_format": "none"}).choices[0].message
    assert "reasoning_content" not in inline.model_extra
    opening, tag, rest = inline.content.partition("<think>")
    thought, closing, answer = rest.partition("</think>")
    assert (opening, tag, closing) == ("", "<think>", "</think>")
    assert (thought.strip(), answer.strip()) == (apart.reasoning_content.strip(), apart.content.strip())


@pytest.mark.parametrize("form", ["auto", "deepseek", "deepseek-legacy", "none"])
def test_reasoning_format_of_a_stream(client: openai.OpenAI, form: str) -> None:
    deltas = [
        chunk.choices[0].delta
        for chunk in budgeted(client, stream=True, extra_body={"reasoning_format": form})
        if chunk.choices
    ]
    thought = "".join((delta.model_extra or {}).get("reasoning_content", "") for delta in deltas)
    said = "".join(delta.content or "" for delta in deltas)
    inline = form in ("deepseek-legacy", "none")
    assert (bool(thought), said.startswith("<think>"), "</think>" in said) == (not inline, inline, inline)


def test_thinking_that_is_off_leaves_only_an_answer(client: openai.OpenAI) -> None:
    message = budgeted(client, extra_body={"think": False, "thinking_budget_tokens": None}).choices[0].message
    assert message.content
    assert "reasoning_content" not in message.model_extra


def test_responses_think_in_an_item_of_their_own_and_take_it_back(client: openai.OpenAI) -> None:
    asked: Any = {"model": MODEL, "input": HI, "max_output_tokens": LIMIT}
    with client.responses.stream(**asked) as stream:
        events: list[Any] = list(stream)
    assert "response.reasoning_text.delta" in {event.type for event in events}
    assert events[-1].type == "response.incomplete"
    final = events[-1].response
    # Nothing ends the thought here but the limit.
    assert [item.type for item in final.output] == ["reasoning"]
    assert (final.status, final.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    quiet = client.responses.create(**asked, reasoning={"effort": "none"})
    assert [item.type for item in quiet.output] == ["message"]
    again = [*HI, *(item.model_dump(exclude_none=True) for item in (*final.output, *quiet.output)), *HI]
    assert client.responses.create(**{**asked, "input": again}, reasoning={"effort": "none"}).output_text


def test_anthropics_budget_is_kept_and_thinking_sent_back_is_taken(daemon: Daemon) -> None:
    budget = 1024  # the least there is
    thinking: Any = {"type": "enabled", "budget_tokens": budget}
    with anthropic.Anthropic(base_url=daemon.url, api_key="none", max_retries=0, timeout=150) as client:
        with client.messages.stream(
            model=MODEL, max_tokens=budget + 30, messages=HI, thinking=thinking
        ) as stream:
            kinds = [event.type for event in stream if event.type.startswith("content_block_st")]
            message = stream.get_final_message()
        thought, text = message.content
        assert kinds == ["content_block_start", "content_block_stop"] * 2
        assert thought.type == "thinking"
        assert 0 < count(daemon, thought.thinking) <= budget
        assert text.type == "text"
        assert text.text
        assert message.stop_reason == "max_tokens"
        back: Any = [*HI, {"role": "assistant", "content": message.content}, *HI]
        asked = {"model": MODEL, "max_tokens": 5, "messages": back, "thinking": {"type": "disabled"}}
        (answer,) = client.messages.create(**asked).content
        assert answer.type == "text"


@pytest.mark.parametrize("think", [True, False, None])
def test_ollama_thinks_beside_the_content(daemon: Daemon, think: bool | None) -> None:
    with ollama.Client(host=daemon.url, timeout=100) as client:
        reply = client.chat(MODEL, HI, think=think, options={"num_predict": 12})
        parts = list(client.chat(MODEL, HI, think=think, options={"num_predict": 12}, stream=True))
        written = client.generate(MODEL, "Is the sea salty?", think=think, options={"num_predict": 12})
        able = client.show(MODEL).capabilities
    thinks = think is not False
    assert (bool(reply.message.thinking), bool(reply.message.content)) == (thinks, not thinks)
    assert "".join(part.message.thinking or "" for part in parts) == (reply.message.thinking or "")
    assert (bool(written.thinking), bool(written.response)) == (thinks, not thinks)
    assert able is not None
    assert "thinking" in able
