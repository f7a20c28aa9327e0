from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.browser import Driver, start_driver


@pytest.fixture(scope="module")
def driver() -> Iterator[Driver]:
    """Headless Chromium; the test skips where there is none."""
    running = start_driver()
    yield running
    running.close()
