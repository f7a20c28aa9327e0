"""`llmrun embed` against the real HTTP app; the service behind it plays a script."""

from __future__ import annotations

import json

import pytest

from llmrun.types import EmbedRequest
from tests.api.scripted import MODEL
from tests.api.vectors import vector, vectors
from tests.cli.conftest import Shell


@pytest.fixture
def embeds(served: Shell) -> Shell:
    served.daemon.lookup = vectors
    return served


def asked(shell: Shell) -> list[EmbedRequest]:
    return [request for request in shell.daemon.looked_up if isinstance(request, EmbedRequest)]


def test_embed_texts_are_json_lines_in_order(embeds: Shell) -> None:
    done = embeds.run("embed", MODEL, "a b", "c", "--dimensions", "3")
    assert (done.code, done.err) == (0, "")
    assert [json.loads(line) for line in done.out.splitlines()] == [
        {"index": number, "embedding": vector(number).numbers()} for number in (0, 1)
    ]
    (request,) = asked(embeds)
    assert (request.inputs, request.dimensions, request.truncate) == (("a b", "c"), 3, False)


@pytest.mark.parametrize("words", [(), ("-",)])
def test_embed_without_a_text_takes_the_lines_of_stdin(embeds: Shell, words: tuple[str, ...]) -> None:
    done = embeds.run("embed", MODEL, *words, stdin="".join(f"line {number}\n" for number in range(100)))
    assert done.code == 0
    assert [json.loads(line)["index"] for line in done.out.splitlines()] == list(range(100))
    sent = [text for request in asked(embeds) for text in request.inputs]
    assert sent == [f"line {number}" for number in range(100)]
    assert len(asked(embeds)) == 2


def test_embed_cut_text_is_told_of(embeds: Shell) -> None:
    done = embeds.run("embed", MODEL, "a", "b", "--truncate")
    assert done.err == "warning: text 1 was cut by 7 tokens\n"
    assert asked(embeds)[0].truncate


@pytest.mark.parametrize(
    ("words", "stdin", "said"),
    [
        ((), "", "there is no text"),
        ((), None, "there is no text"),
        (("a", ""), None, "a text is empty"),
        ((), "a\n\nb\n", "line 2 of stdin is empty"),
    ],
)
def test_embed_empty_text_is_wrong_usage(
    embeds: Shell, words: tuple[str, ...], stdin: str | None, said: str
) -> None:
    done = embeds.run("embed", MODEL, *words, stdin=stdin)
    assert (done.code, done.out) == (2, "")
    assert said in done.err


def test_embed_unknown_model_exits_3(served: Shell) -> None:
    assert served.run("embed", "nothing:1b", "a").code == 3
