from __future__ import annotations

from pathlib import Path

import pytest

from llmrun.cli import version


@pytest.mark.parametrize(
    ("names", "devices"),
    [
        (["libggml-base.so", "libggml-cpu.so.0", "libggml.so", "libllama.so"], ("CPU",)),
        (["libggml-cuda.so", "libggml-cpu-haswell.so", "libggml-cpu-skylakex.so"], ("CUDA", "CPU")),
        (["libggml-metal.dylib", "libggml-blas.dylib", "libggml-cpu.0.25.3.dylib"], ("Metal", "CPU")),
        (["ggml-vulkan.dll", "ggml-cpu.dll"], ("Vulkan", "CPU")),
        ([], ()),
    ],
)
def test_backends_in_library_names(names: list[str], devices: tuple[str, ...]) -> None:
    assert version.backends_in(names) == devices


@pytest.mark.parametrize(
    ("names", "found"),
    [
        (["libllama.so", "libllama.so.0", "libllama.so.0.5.0"], "0.5.0"),
        (["libllama.0.5.0.dylib", "libllama.dylib"], "0.5.0"),
        (["libllama.so"], None),
        (["llama.dll"], None),
    ],
)
def test_llama_cpp_version_in_library_names(names: list[str], found: str | None) -> None:
    assert version.llama_cpp_in(names) == found


def test_find_backend_reads_the_folder_the_bindings_would(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "libggml-vulkan.so").touch()
    (tmp_path / "libllama.so.9.8.7").touch()
    monkeypatch.setenv("LLAMA_CPP_LIB_PATH", str(tmp_path))
    backend = version.find_backend()
    assert backend is not None
    assert backend.devices == ("Vulkan",)
    assert "llama.cpp 9.8.7 of llama-cpp-python" in version.version_line()


def test_version_line_without_llama_cpp_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(version, "PACKAGE", "no-such-package")
    assert version.version_line().endswith("(llama.cpp missing, backend none)")
