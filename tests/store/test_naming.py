from __future__ import annotations

import os
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmrun.errors import LlmrunError
from llmrun.store.manifest import Manifests
from llmrun.store.naming import short_name
from llmrun.store.reference import NameRef, parse_name, parse_reference


@pytest.mark.parametrize(
    ("wanted", "vendor", "taken", "expected"),
    [
        ("Qwen3-4B:Q4_K_M", "Qwen", [], "qwen3-4b:Q4_K_M"),
        ("Some-Model-GGUF:Q8_0", "Org", [], "some-model:Q8_0"),
        ("a:Q8_0", "Org_1", ["a:Q8_0"], "org_1/a:Q8_0"),
        ("a:Q8_0", "Org", ["a:Q8_0", "org/a:Q8_0"], "a-2:Q8_0"),
        ("a", "", ["a", "a-2"], "a-3"),
        ("模型 🦙 v2", "", [], "v2"),
        ("模型", "", [], "model"),
    ],
)
def test_short_name_is_the_first_free_form(wanted: str, vendor: str, taken: list[str], expected: str) -> None:
    assert short_name(wanted, vendor, lambda name: name in taken) == expected


@given(st.text(alphabet=st.characters(exclude_characters=":"), max_size=300), st.text(max_size=100))
def test_short_name_is_always_one_the_grammar_takes(model: str, vendor: str) -> None:
    taken: list[str] = []
    for _ in range(3):
        name = short_name(f"{model}:Q4_K_M", vendor, lambda name: name in taken)
        assert isinstance(parse_reference(name), NameRef) or re.search(r"\.gguf", name)
        taken.append(name)
    assert len(set(taken)) == 3


@given(st.text(max_size=60), st.sampled_from(["", "../", "a/../", "a/", "con:", "a:"]))
def test_any_name_that_is_taken_stays_in_its_folder(text: str, start: str) -> None:
    try:
        name = str(parse_name(start + text))
    except LlmrunError:
        return
    folder = Path("/models")
    path = Manifests(folder).path(name)
    assert path.parent == folder / "manifests"
    assert Path(os.path.normpath(path)) == path
    assert len(path.name.encode()) <= 255
