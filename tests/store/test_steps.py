from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.config import Paths
from llmrun.errors import LlmrunError
from llmrun.store import PullProgress, Store, parse_modelfile
from llmrun.store.housekeeping import Housekeeper
from llmrun.store.shelf import Shelf
from llmrun.store.steps import lock_key, steps_to
from tests.store.conftest import files_under
from tests.store.models import gguf_bytes


def test_steps_have_names_that_no_model_can_be_given(store: Store) -> None:
    for step in steps_to("made:q8"):
        with pytest.raises(LlmrunError):
            store.resolve(step)
        assert lock_key(step) == lock_key("made:q8")


def test_steps_of_a_killed_maker_are_unlisted_pruned_and_in_nobodys_way(
    paths: Paths, store: Store, tmp_path: Path
) -> None:
    source = tmp_path / "base.gguf"
    source.write_bytes(gguf_bytes(tmp_path))
    shelf, keeper = Shelf(paths.models), Housekeeper(paths)
    store._create(steps_to("made").plain, parse_modelfile(f"FROM {source}"), None)
    assert store.list() == []
    with shelf.key_lock(lock_key("made"), lambda: None):
        assert keeper.litter() == []  # its maker is alive
    (found,) = keeper.prune()
    assert (found.kind, found.path.suffix) == ("temporary", ".json")
    assert keeper.litter() == []
    assert source.is_file()
    assert files_under(paths.models / "manifests") == []


def test_create_quantized_that_fails_leaves_no_step(paths: Paths, store: Store, tmp_path: Path) -> None:
    source = tmp_path / "base.gguf"
    source.write_bytes(gguf_bytes(tmp_path))  # no model that llama.cpp could load
    seen: list[PullProgress] = []
    with pytest.raises(LlmrunError):
        store.create_quantized("made", parse_modelfile(f"FROM {source}"), "Q8_0", on_progress=seen.append)
    assert files_under(paths.models / "manifests") == []
    assert Housekeeper(paths).litter() == []
