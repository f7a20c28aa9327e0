from __future__ import annotations

import pytest

from llmrun.cli.explaining.terminal import quoted, sparkline
from llmrun.cli.explaining.trace import shown


@pytest.mark.parametrize(
    ("values", "bars"), [([1.0], "█"), ([0.0, 0.0], "▁▁"), ([1.0, 4.0, 8.0], "▂▅█"), ([8.0] * 300, "█" * 60)]
)
def test_sparkline_is_as_high_as_its_values(values: list[float], bars: str) -> None:
    assert sparkline(values) == bars


def test_shown_and_quoted_make_all_of_a_token_visible() -> None:
    assert shown("ä".encode()) == "ä"
    assert shown(b"\xf0\x9f") == "\\xf0\\x9f"
    assert quoted(" a\n") == '" a\\n"'
