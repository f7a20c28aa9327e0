from __future__ import annotations

from dataclasses import replace

import pytest

from llmrun.chat.syntax import FALLBACK, Block, ContentPiece, OutputParser
from tests.chat.syntax.parsing import parsed

HERMES = replace(FALLBACK, reasoning=Block("<think>\n", "\n</think>\n\n"), end="<|im_end|>")
WEATHER = (
    '<tool_call>\n{"name": "weather", "arguments": {"city": "Zürich \\"x\\"", "days": [1, {}]}}\n</tool_call>'
)


def test_parser_reasoning_content_and_calls_come_apart() -> None:
    found = parsed(f"<think>\nHm.\n</think>\n\nLook:\n{WEATHER}\n{WEATHER}<|im_end|>\n", HERMES)
    assert (found.reasoning, found.content, found.names) == ("Hm.", "Look:", ["weather", "weather"])
    assert [call.arguments for call in found.calls] == [{"city": 'Zürich "x"', "days": [1, {}]}] * 2
    assert all(call.complete for call in found.calls)


@pytest.mark.parametrize(
    ("primed", "text", "content"),
    [
        ("", "<think>\nHm.\n</think>\n\nLook:\n", "<think>\nHm.\n</think>\n\nLook:\n"),
        ("", "<think>Hm.</think>Look", "<think>Hm.</think>Look"),  # as written, not as the template would
        ("<think>\n", "Hm.\n</think>\n\nLook", "<think>\nHm.\n</think>\n\nLook"),
        ("</think>\n", "Look", "Look"),  # thinking was over before the answer began
        ("", "<think>\nHm.", "<think>\nHm."),
        ("", "Look", "Look"),
    ],
)
def test_parser_inline_reasoning_is_content_as_it_was_written(primed: str, text: str, content: str) -> None:
    found = parsed(text, HERMES, primed=primed, inline=True)
    assert (found.content, found.reasoning, found.calls) == (content, "", [])


def test_parser_inline_reasoning_that_speaks_of_a_call_makes_none() -> None:
    found = parsed(f"<think>Say {WEATHER}</think>Look{WEATHER}<|im_end|>", HERMES, inline=True)
    assert found.content == f"<think>Say {WEATHER}</think>Look"
    assert [call.arguments["city"] for call in found.calls] == ['Zürich "x"']


def test_parser_text_behind_a_call_is_kept() -> None:
    assert parsed(f"{WEATHER}\nDone.", HERMES).content == "\nDone."


def test_parser_prompt_that_opened_reasoning_primes_the_parser() -> None:
    assert parsed("Hm.\n</think>\n\nHi", HERMES, primed="<think>\n").reasoning == "Hm."


def test_parser_arguments_before_the_name_wait_for_it() -> None:
    found = parsed('<tool_call>{"arguments": {"a": 1}, "name": "f"}</tool_call>', HERMES)
    assert (found.names, found.calls[0].arguments) == (["f"], {"a": 1})


@pytest.mark.parametrize(
    "text",
    ["The <tool_call> tag", "<tool_call>{]}</tool_call>", '<tool_call>{"name": 5}</tool_call> x', "a <tool_"],
)
def test_parser_what_is_no_call_is_content_whole(text: str) -> None:
    found = parsed(text, HERMES)
    assert (found.content, found.calls) == (text, [])


def test_parser_broken_arguments_keep_their_text_and_are_not_complete() -> None:
    found = parsed('<tool_call>{"name": "f", "arguments": {"a": 1,,}}</tool_call> x', HERMES)
    assert (found.calls[0].text, found.calls[0].complete, found.content) == ('{"a": 1,,}}', False, " x")


def test_parser_cut_call_is_not_complete() -> None:
    found = parsed(WEATHER.partition("ich")[0], HERMES, cut=True)
    assert (found.calls[0].text, found.calls[0].complete) == ('{"city": "Zür', False)


@pytest.mark.parametrize("length", range(1, len("<tool_call>") + 1))
def test_parser_cut_marker_never_shows(length: int) -> None:
    assert parsed("Hi " + "<tool_call>"[:length], HERMES, cut=True).content == "Hi "


def test_parser_holds_back_only_what_could_be_a_marker() -> None:
    parser = OutputParser(HERMES)
    assert parser.feed("a < b <to") == [ContentPiece("a < b ")]
    assert parser.feed("y>") == [ContentPiece("<toy>")]


@pytest.mark.parametrize(
    ("text", "content"),
    [
        ("<tool_response>\nsnow\n</tool_response>", "snow"),
        ("It snows.\n</tool_response>", "It snows."),
        ("It <tool_response>snows", "It snows"),
        ("It <tool_resp", "It <tool_resp"),
    ],
)
def test_parser_tags_of_results_that_a_model_repeats_are_left_out(text: str, content: str) -> None:
    found = parsed(text, FALLBACK)
    assert (found.content, found.calls) == (content, [])
