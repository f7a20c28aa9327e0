"""docs/reliability.md names tests: each of them exists."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
NAMED = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", (ROOT / "docs" / "reliability.md").read_text("utf-8"))


def test_every_test_that_the_document_names_exists() -> None:
    assert len(NAMED) > 20
    missing = [
        f"{path}::{name}"
        for path, name in NAMED
        if not re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text("utf-8"), re.MULTILINE)
    ]
    assert not missing
