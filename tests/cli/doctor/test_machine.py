from __future__ import annotations

import pytest

from llmrun.cli.doctor import machine
from llmrun.cli.doctor.finding import Finding


def test_check_machine_looks_at_this_one() -> None:
    findings = machine.check_machine()
    assert [finding.subject for finding in findings] == ["llmrun", "system", "processor", "memory"]
    assert all(finding.text for finding in findings)


@pytest.mark.parametrize(
    ("features", "level"), [(["AVX", "AVX2"], "ok"), (["AVX"], "warning"), ([], "ok")], ids=str
)
def test_processor_without_avx2_is_slow(
    monkeypatch: pytest.MonkeyPatch, features: list[str], level: str
) -> None:
    monkeypatch.setattr(machine.platform, "machine", lambda: "x86_64")
    assert machine.processor("Chip", features, 2).level == level


def test_memory_that_is_nearly_full_is_a_warning_with_a_mend() -> None:
    assert machine.memory(16_000_000_000, 8_000_000_000) == Finding("memory", "ok", "8.0 GB free of 16.0 GB")
    low = machine.memory(16_000_000_000, 500_000_000)
    assert low.level == "warning"
    assert low.mend
