from __future__ import annotations

import platform

import psutil
import pytest

from llmrun.store import hardware


def test_this_machine_has_memory_and_says_what_it_reads() -> None:
    machine = hardware.this_machine()
    assert 0 < machine.available <= machine.total == psutil.virtual_memory().total
    assert machine.bandwidth is None


def test_read_bandwidth_is_what_memory_could_have(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hardware, "_SAMPLE", 32 << 20)
    assert 1e8 < hardware.read_bandwidth(threads=1) < 1e13


@pytest.mark.parametrize(
    ("machine", "flags", "features"),
    [
        ("x86_64", {"sse2", "avx2", "avx512f"}, {"avx2", "avx512"}),
        ("x86_64", {"sse2"}, set()),
        ("aarch64", {"asimd", "asimddp"}, {"dotprod"}),
        ("aarch64", {"asimd"}, set()),
    ],
)
def test_cpu_features_are_named_as_kernels_asks(
    monkeypatch: pytest.MonkeyPatch, machine: str, flags: set[str], features: set[str]
) -> None:
    monkeypatch.setattr(platform, "machine", lambda: machine)
    monkeypatch.setattr(hardware, "cpu_flags", lambda: flags)
    assert hardware.cpu_features() == features


def test_gpu_memory_of_a_llama_cpp_without_gpus_is_none() -> None:
    assert hardware._gpu_memory() == 0
