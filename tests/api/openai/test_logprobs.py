from __future__ import annotations

import pytest

from llmrun.api.openai.logprobs import LEAST, LegacyLogprobs, chat_logprobs
from llmrun.types import PromptToken
from tests.api.scripted import token


def test_chat_logprobs_golden() -> None:
    assert chat_logprobs([token("hé", -0.25, ("hé", -0.25), ("ho", -1.5))]) == [
        {
            "token": "hé",
            "logprob": -0.25,
            "bytes": [104, 195, 169],
            "top_logprobs": [
                {"token": "hé", "logprob": -0.25, "bytes": [104, 195, 169]},
                {"token": "ho", "logprob": -1.5, "bytes": [104, 111]},
            ],
        }
    ]


def test_part_of_a_character_is_escaped_and_its_bytes_kept() -> None:
    (record,) = chat_logprobs([token(b"\xf0\x9f")])
    assert record["token"] == "\\xf0\\x9f"
    assert record["bytes"] == [0xF0, 0x9F]
    assert LegacyLogprobs().take([token(b"\xf0\x9f")])["tokens"] == ["bytes:\\xf0\\x9f"]


def test_impossible_token_has_a_number_json_can_hold() -> None:
    (record,) = chat_logprobs([token("a", float("-inf"))])
    assert record["logprob"] == LEAST


def test_legacy_offsets_count_whole_characters() -> None:
    tokens = [token("ab"), token(b"\xf0\x9f"), token(b"\x99\x82"), token("c")]
    assert LegacyLogprobs().take(tokens)["text_offset"] == [0, 2, 2, 3]


@pytest.mark.parametrize(
    ("echoed", "wanted"),
    [
        ("Once up", (["Once", " up", " a"], [0, 4, 7])),
        (" Once up", ([" Once", " up", " a"], [0, 5, 8])),
        ((5, 6), ([" Once", " up", " a"], [0, 5, 8])),
    ],
)
def test_legacy_space_that_the_vocabulary_puts_in_front_is_no_part_of_an_echoed_prompt(
    echoed: str | tuple[int, ...], wanted: tuple[list[str], list[int]]
) -> None:
    prompt = [PromptToken(5, b" Once", None), PromptToken(6, b" up", -1.0)]
    whole = LegacyLogprobs(echoed).take([*prompt, token(" a")])
    assert (whole["tokens"], whole["text_offset"]) == wanted
    stream = LegacyLogprobs(echoed)
    pieces = [stream.take(prompt[:1]), stream.take(prompt[1:]), stream.take([token(" a")])]
    assert [name for piece in pieces for name in piece["tokens"]] == wanted[0]


def test_legacy_answer_keeps_its_own_space() -> None:
    assert LegacyLogprobs("Once").take([token(" a")])["tokens"] == [" a"]


def test_legacy_chosen_token_joins_its_alternatives() -> None:
    taken = LegacyLogprobs().take([token("x", -4.0, ("a", -0.1), ("b", -2.0))])
    assert taken["top_logprobs"] == [{"a": -0.1, "b": -2.0, "x": -4.0}]
