from __future__ import annotations

import logging
from pathlib import Path

import pytest

from llmrun.llama import amx, devices, llama_version, system_info
from llmrun.llama.library import BINDINGS, LIBRARY, _LogLines, lib
from tests.support.tiny import write_probe


def test_library_loaded_is_the_one_the_bindings_describe() -> None:
    assert llama_version() == LIBRARY
    pinned = Path(__file__).parents[2].joinpath("pyproject.toml").read_text("utf-8")
    assert f'"llama-cpp-python=={BINDINGS}"' in pinned


def test_devices_has_a_cpu_with_memory() -> None:
    cpu = next(device for device in devices() if device.kind == "cpu")
    assert cpu.memory_total > 0
    assert "CPU" in system_info()


def test_log_continued_line_is_joined_with_its_level(caplog: pytest.LogCaptureFixture) -> None:
    lines = _LogLines()
    with caplog.at_level(logging.DEBUG, "llmrun.llama"):
        lines.add(3, "half ")
        lines.add(5, "a line\n")
        lines.add(4, "bad\n")
    assert [(r.levelno, r.message) for r in caplog.records] == [
        (logging.WARNING, "half a line"),
        (logging.ERROR, "bad"),
    ]
    assert lines.error == "bad"


def test_probe_file_is_what_the_tests_write(tmp_path: Path) -> None:
    assert write_probe(tmp_path / "probe.gguf").read_bytes() == amx.PROBE.read_bytes()


def test_amx_probe_of_this_process_survives() -> None:
    # Whatever the machine, the choice made at import left kernels that work.
    assert amx.works(lib)
