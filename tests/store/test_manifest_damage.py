"""A manifest whose bytes change on the disk, in every place: what comes of it is said, and no other model is
hurt."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import BAD_FILE, UNKNOWN_MODEL, LlmrunError
from llmrun.store import Store, parse_modelfile
from tests.store.models import gguf_bytes

FULL = """FROM {path}
SYSTEM Be brief.
TEMPLATE {{{{ .Prompt }}}}
PARAMETER temperature 0.5
PARAMETER stop END
MESSAGE user Hello
MESSAGE assistant Hi
LICENSE MIT
"""


@pytest.fixture
def manifest(store: Store, paths: Paths, tmp_path: Path) -> Path:
    """Of a model that has something in every field, beside another one."""
    path = tmp_path / "base.gguf"
    path.write_bytes(gguf_bytes(tmp_path))
    store.copy(str(path), "other")
    store.create("full", parse_modelfile(FULL.format(path=path)))
    return paths.models / "manifests" / "full.json"


def outcome(store: Store) -> str:
    """How the damaged model fares; anything but these two errors is a failure of the test."""
    assert "other" in [model.name for model in store.list()]
    assert store.resolve("other").name == "other"
    try:
        store.resolve("full")
    except LlmrunError as error:
        told = error
    else:
        return "works"
    assert told.kind in (BAD_FILE, UNKNOWN_MODEL), str(told)
    assert "full" in str(told)
    return told.kind.code


def test_manifest_with_any_byte_flipped_is_told_or_harmless(store: Store, manifest: Path) -> None:
    raw = manifest.read_bytes()
    seen = set()
    for place in range(len(raw)):
        for mask in (0x01, 0x80):
            manifest.write_bytes(raw[:place] + bytes([raw[place] ^ mask]) + raw[place + 1 :])
            seen.add(outcome(store))
    assert BAD_FILE.code in seen


def test_manifest_cut_short_anywhere_is_told(store: Store, manifest: Path) -> None:
    raw = manifest.read_bytes().rstrip()
    for length in range(len(raw)):
        manifest.write_bytes(raw[:length])
        assert outcome(store) == BAD_FILE.code


@pytest.mark.parametrize("value", [None, 7, -1, "x", "../../x", [], {}, True, 1e308])
def test_manifest_with_any_field_of_another_kind_is_told_or_harmless(
    store: Store, manifest: Path, value: object
) -> None:
    whole = json.loads(manifest.read_bytes())
    for name in whole:
        manifest.write_text(json.dumps({**whole, name: value}))
        outcome(store)
    for name in whole["files"][0]:
        manifest.write_text(json.dumps({**whole, "files": [{**whole["files"][0], name: value}]}))
        outcome(store)
