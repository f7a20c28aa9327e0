from __future__ import annotations

import json
from typing import Any

import pytest

from llmrun.cli.doctor import backend

CPU = {"name": "CPU", "description": "Chip", "kind": "cpu", "memory_free": 1, "memory_total": 8_000_000_000}
GPU = {**CPU, "name": "CUDA0", "description": "RTX", "kind": "gpu"}


def report(*devices: dict[str, Any]) -> str:
    system = "CPU : AVX = 1 | AVX2 = 1 | AMX_INT8 = 0 |"
    return "noise\n" + json.dumps({"version": "0.5.0", "system": system, "devices": devices})


def test_judge_working_backend() -> None:
    build, devices = backend.judge(0, report(CPU), "", [])
    assert (build.level, build.text) == ("ok", "0.5.0, built with AVX, AVX2")
    assert devices.text == "CPU (Chip, 8.0 GB)"


@pytest.mark.parametrize(
    ("code", "stderr", "says"),
    [
        (-4, "", "SIGILL: it was built for another CPU"),
        (1, "Traceback\nOSError: libggml.so: not found", "OSError: libggml.so: not found"),
        (1, "", "it says nothing"),
    ],
)
def test_judge_crash_is_a_finding_with_the_rebuild(code: int, stderr: str, says: str) -> None:
    (finding,) = backend.judge(code, "", stderr, [])
    assert finding.level == "broken"
    assert says in finding.text
    assert "--force-reinstall" in finding.mend
    assert "llama-cpp-python" in finding.mend


def test_judge_wrong_bindings_has_their_own_mend() -> None:
    said = json.dumps({"error": "0.1 is installed", "hint": "pip install it"})
    (finding,) = backend.judge(0, said, "", [])
    assert (finding.level, finding.text, finding.mend) == ("broken", "0.1 is installed", "pip install it")


def test_judge_gpu_that_stays_idle_is_a_warning() -> None:
    assert backend.judge(0, report(GPU, CPU), "", ["NVIDIA"])[-1].level == "ok"
    for maker, flag in (("NVIDIA", "GGML_CUDA"), ("AMD", "GGML_HIP"), ("Vulkan", "GGML_VULKAN")):
        idle = backend.judge(0, report(CPU), "", [maker])[-1]
        assert (idle.level, maker in idle.text) == ("warning", True)
        assert f"{flag}=on" in idle.mend


def test_judge_build_without_what_the_processor_has_is_a_warning() -> None:
    assert backend.judge(0, report(CPU), "", [], {"avx2", "sse4_2"})[-1].level == "ok"
    slow = backend.judge(0, report(CPU), "", [], {"avx2", "avx512f"})[-1]
    assert (slow.level, slow.text.endswith("processor's AVX512")) == ("warning", True)
    assert "GGML_NATIVE=on" in slow.mend


def test_compiler_is_asked_for_where_llama_cpp_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backend, "find_backend", lambda: None)
    monkeypatch.setattr(backend.shutil, "which", lambda _: None)
    missing, compiler = backend.check_backend({})
    assert missing.level == compiler.level == "broken"
    assert "pip install llama-cpp-python" in missing.mend
    assert compiler.mend


def test_check_backend_loads_the_real_one_in_a_child() -> None:
    import os

    findings = backend.check_backend(dict(os.environ))
    assert {finding.subject for finding in findings} >= {"llama.cpp", "devices"}
    assert all(finding.level != "broken" for finding in findings), findings
