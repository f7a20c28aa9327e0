from __future__ import annotations

from collections.abc import Iterator

import pytest

from llmrun.engine import Grammars
from llmrun.llama import Model, guide_tokenizer
from tests.support.models import tiny_model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Model]:
    loaded = tiny_model(tmp_path_factory.mktemp("model"))
    yield loaded
    loaded.close()


@pytest.fixture(scope="module")
def grammars(model: Model) -> Grammars:
    return Grammars(lambda: guide_tokenizer(model.vocab))
