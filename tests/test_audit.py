"""The audit of dependencies passes here, and finds what it is there to find."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent

spec = importlib.util.spec_from_file_location("audit", ROOT / "scripts" / "audit.py")
assert spec is not None
assert spec.loader is not None
audit = importlib.util.module_from_spec(spec)
spec.loader.exec_module(audit)


def test_audit_finds_nothing_here() -> None:
    assert list(audit.faults()) == []


def test_package_that_nobody_looked_at_is_named_with_what_brought_it(monkeypatch: pytest.MonkeyPatch) -> None:
    known = audit.listed()
    assert known.pop("markupsafe")
    monkeypatch.setattr(audit, "listed", lambda: known)
    (fault,) = audit.faults()
    assert fault.startswith("markupsafe (BSD-3-Clause) is new, through jinja2")


@pytest.mark.parametrize("says", ["GPL-3.0-only", "AGPL", "Proprietary", "", "MIT AND GPL-2.0-or-later"])
def test_licence_that_nobody_allowed_is_a_fault(monkeypatch: pytest.MonkeyPatch, says: str) -> None:
    monkeypatch.setattr(audit, "closure", lambda: {"rich": "llmrun"})
    monkeypatch.setattr(audit, "licence", lambda _: says)
    (fault,) = audit.faults()
    assert fault == f"rich has the licence {says!r}, which nobody has allowed"


@pytest.mark.parametrize(
    ("requirement", "wrong"),
    [
        ("rich>=13.9", "no lower and upper bound"),
        ("rich<99", "no lower and upper bound"),
        ("rich>=98,<99", "is installed"),
        ("rich>=1,<99", None),
        ("rich>=98,<99; python_version < '3'", None),
    ],
)
def test_range_needs_both_ends_and_holds_what_is_installed(requirement: str, wrong: str | None) -> None:
    found = audit.bounds(Requirement(requirement))
    assert found is None if wrong is None else wrong in found
