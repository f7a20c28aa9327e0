"""The real default model, a home of its own, and a daemon over it, for all of tests/real.

The model is fetched once, with the project's own pull, and kept in `.cache/` beside the tests.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from llmrun.config import DEFAULT_MODEL, Paths
from llmrun.store import Store
from tests.real.daemons import Daemon
from tests.support.browser import Driver, start_driver

HOME = Path(__file__).parents[2] / ".cache" / "tests" / "home"


@pytest.fixture(scope="session")
def home() -> Path:
    """An LLMRUN_HOME that holds the default model."""
    Store(Paths.find({"LLMRUN_HOME": str(HOME)})).pull(DEFAULT_MODEL)
    return HOME


@pytest.fixture(scope="session")
def model_path(home: Path) -> Path:
    """The default model's GGUF."""
    return Store(Paths.find({"LLMRUN_HOME": str(home)})).resolve(DEFAULT_MODEL).path


@pytest.fixture(scope="module")
def daemon(home: Path) -> Iterator[Daemon]:
    """A daemon for the tests of one module, with a small context so that it loads at once."""
    running = Daemon(home, LLMRUN_CTX="2048")
    yield running
    running.close()


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """Headless Chromium; the test skips where there is none."""
    running = start_driver()
    yield running
    running.close()
