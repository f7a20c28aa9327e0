"""What `scripts/soak` does for ten minutes, for less than half of one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.soak.soak import soak

pytestmark = pytest.mark.real


@pytest.mark.timeout(400)  # some twenty seconds; on a machine that others keep busy, as long as that takes
def test_mixed_requests_each_have_one_end_and_leave_nothing_behind(home: Path, tmp_path: Path) -> None:
    report = soak(home, tmp_path, seconds=8, round_seconds=2, seed=1, threads="1", told=print)
    assert report.failures == []
