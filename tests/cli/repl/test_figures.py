from __future__ import annotations

import pytest

from llmrun.cli.repl.figures import bar


@pytest.mark.parametrize(
    ("used", "shown"),
    [(0, "[░░░░]"), (1, "[█░░░]"), (50, "[██░░]"), (99, "[███░]"), (100, "[████]"), (120, "[████]")],
)
def test_bar_shows_anything_at_all_and_is_full_only_when_it_is(used: int, shown: str) -> None:
    assert bar(used, 100, 4) == shown
