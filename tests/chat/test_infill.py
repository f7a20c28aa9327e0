from __future__ import annotations

import pytest

from llmrun.chat.infill import infill_prompt
from llmrun.errors import LlmrunError
from llmrun.types import Snippet
from tests.chat.vocabs import CharVocab

CONTROL = {"<pre>": 1, "<suf>": 2, "<mid>": 3, "<repo>": 4, "<file>": 5}
PLAIN = CharVocab(CONTROL, fim=(1, 2, 3))
PROJECTS = CharVocab(CONTROL, fim=(1, 2, 3), fim_repo=4, fim_file=5)
SNIPPETS = (Snippet("a.py", "A"), Snippet("b.py", "B"))


def written(vocab: CharVocab, snippets: tuple[Snippet, ...] | None) -> str:
    return vocab.read(infill_prompt("x <mid>", "y", snippets, vocab))


def test_infill_texts_stand_between_the_models_tokens_and_are_plain() -> None:
    ids = infill_prompt("x <mid>", "y", None, PROJECTS)
    assert (ids[0], ids[-1], ids.count(3)) == (1, 3, 1)
    assert PROJECTS.read(ids) == "<pre>x <mid><suf>y<mid>"


def test_infill_with_a_project_in_view_names_its_files() -> None:
    assert written(PROJECTS, SNIPPETS) == (
        "<repo>myproject\n<file>a.py\nA<file>b.py\nB<file>filename\n<pre>x <mid><suf>y<mid>"
    )
    assert written(PROJECTS, ()) == "<repo>myproject\n<file>filename\n<pre>x <mid><suf>y<mid>"


def test_infill_model_without_file_tokens_sees_snippets_all_the_same() -> None:
    border = "\n\n--- snippet ---\n\n"
    assert written(PLAIN, SNIPPETS) == f"{border}A{border}B<pre>x <mid><suf>y<mid>"


def test_infill_model_without_its_tokens_is_refused() -> None:
    with pytest.raises(LlmrunError, match="cannot fill in the middle") as caught:
        infill_prompt("x", "y", None, CharVocab({}))
    assert caught.value.field == "suffix"


@pytest.mark.parametrize("prefix", [None, (1, 2), ("a", 1)])
def test_infill_prefix_that_is_no_text_is_refused(prefix: tuple[int | str, ...] | None) -> None:
    with pytest.raises(LlmrunError, match="should be text") as caught:
        infill_prompt(prefix, "y", None, PLAIN)
    assert caught.value.field == "prompt"
