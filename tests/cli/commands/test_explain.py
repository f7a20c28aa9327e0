"""`llmrun explain` over a real daemon of its own and a tiny model of random weights."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from tests.api.scripted import MODEL
from tests.cli.conftest import Shell

WORDS = ("explain", MODEL, "hi there <|im_end|> & <b>", "--temperature", "0", "--max-tokens", "6", "--local")


@pytest.fixture
def explained(stocked: Shell) -> dict[str, Any]:
    done = stocked.run(*WORDS, "--json", "--candidates", "3")
    assert done.code == 0, done.err
    found: dict[str, Any] = json.loads(done.out)
    return found


def test_explain_shows_the_prompt_that_the_model_gets(explained: dict[str, Any]) -> None:
    assert "hi there <|im_end|> & <b>" in explained["rendered"]
    spelt = "".join(token["text"] for token in explained["prompt"])
    assert spelt.removeprefix("<s>").replace(" ", "") == explained["rendered"].replace(" ", "")
    ends = [token["id"] for token in explained["prompt"] if token["text"] == "<|im_end|>"]
    # What the person wrote is no control token, however it is spelt: only the template's own is.
    assert len(ends) == explained["rendered"].count("<|im_end|>") - 1


def test_explain_takes_the_prompt_from_stdin_as_run_does(stocked: Shell) -> None:
    words = ("explain", MODEL, "--max-tokens", "1", "--json", "--local")
    rendered = json.loads(stocked.run(*words, "Sum:", stdin="one\ntwo\n").out)["rendered"]
    assert "Sum:\n\none\ntwo<" in rendered
    assert rendered == json.loads(stocked.run(*words, "Sum:", "-", stdin="one\ntwo\n").out)["rendered"]
    assert stocked.run(*words, stdin="").err == (
        "error: there is no prompt. write it after the model, or pipe it in\n"
    )


def test_explain_shows_every_step_and_its_likeliest_tokens(explained: dict[str, Any]) -> None:
    assert 1 <= len(explained["steps"]) <= 6
    before = None
    for step in explained["steps"]:
        assert len(step["candidates"]) == 3
        assert (step["gap_ms"] is None) == (before is None or step["ms"] == before)
        before = step["ms"]
        assert step["id"] == step["candidates"][0]["id"]  # greedy
        chances = [candidate["probability"] for candidate in step["candidates"]]
        assert chances == sorted(chances, reverse=True)
        assert 0 < sum(chances) <= 1.0001
    # By the engine's clock: the steps span what the whole says of itself.
    assert explained["ttft_ms"] == explained["steps"][0]["ms"] > 0
    spanned = explained["steps"][-1]["ms"] - explained["ttft_ms"]
    assert spanned == pytest.approx(explained["decode_ms"], abs=5)
    assert explained["prefill"][-1]["processed"] == len(explained["prompt"])


def test_explain_shows_the_candidates_after_each_sampler(stocked: Shell) -> None:
    words = ("explain", MODEL, "hi", "--temperature", "0.8", "-o", "top_k=2", "--max-tokens", "4", "--local")
    done = stocked.run(*words, "--json", "--candidates", "3")
    for step in json.loads(done.out)["steps"]:
        names = [sampler["name"] for sampler in step["samplers"]]
        assert (names[0], names[-2:]) == ("top_k", ["temperature", "draw"])
        for sampler in step["samplers"]:
            assert sampler["left"] == 2
            assert sum(choice["probability"] for choice in sampler["candidates"]) == pytest.approx(
                1, abs=1e-5
            )
            assert step["id"] in [choice["id"] for choice in sampler["candidates"]]
    shown = stocked.run(*words).out
    assert re.search(r"^step 0 +model +top_k 2 +.*temperature 2 +draw 2$", shown, re.MULTILINE)
    assert re.search(r'^> ".*" +[\d.]+%', shown, re.MULTILINE)


def test_explain_counts_kv_bytes_by_the_formula(explained: dict[str, Any]) -> None:
    kv = explained["kv"]
    # The tiny model: 2 layers, one KV head of 32, keys and values, two bytes each.
    assert (kv["layers"], kv["per_token"]) == (2, 2 * 2 * 32 * 2)
    assert kv["prompt"] == len(explained["prompt"]) * kv["per_token"]
    assert kv["answer"] == (len(explained["steps"]) - 1) * kv["per_token"]
    assert explained["batch"]["places"] >= explained["batch"]["running"]


def test_explain_shows_all_stages_on_the_terminal(stocked: Shell) -> None:
    done = stocked.run(*WORDS)
    assert done.code == 0, done.err
    heads = [line.split("  ")[0] for line in done.out.splitlines()]
    stages = ["TEMPLATE", "TOKENS", "PREFILL", "DECODE", "SAMPLERS", "TIME", "KV CACHE"]
    assert [head for head in heads if head in stages] == stages


class _Outward(HTMLParser):
    """Collects what a page would fetch or run, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.outward: list[str] = []
        self.texts: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = {name for name, _ in attrs}
        if tag in ("script", "link", "img", "iframe") or names & {"src", "href"}:
            self.outward.append(tag)
        if tag == "b":
            self.outward.append("a tag of the prompt's")

    def handle_data(self, data: str) -> None:
        self.texts.append(data)


def test_explain_page_is_one_file_that_asks_for_nothing(stocked: Shell, tmp_path: Path) -> None:
    path = tmp_path / "request.html"
    done = stocked.run(*WORDS, "--html", str(path))
    assert (done.code, done.out) == (0, "")
    parser = _Outward()
    text = path.read_text("utf-8")
    parser.feed(text)
    assert parser.outward == []
    assert "url(" not in text
    assert any("hi there <|im_end|> & <b>" in part for part in parser.texts)
    assert "greedy" in parser.texts
