"""llama-server, built from the same kernels as llmrun's.

Its source is the llama.cpp that ships in llama-cpp-python's source distribution; it is built with the flags
that pip's build uses, into `.cache/bench/`, at the first call.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
from importlib.metadata import version
from pathlib import Path

from llmrun.llama.library import AMX_AVOIDED

CACHE = Path(__file__).resolve().parents[2] / ".cache" / "bench"


def llama_server() -> Path:
    """The program; built at the first call, which takes some ten minutes on two cores."""
    found = CACHE / "llama" / "bin" / "llama-server"
    if not found.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        _build(_source(), CACHE / "llama")
    return found


def _source() -> Path:
    release = f"llama-cpp-python=={version('llama-cpp-python')}"
    pip = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-build-isolation"]
    tools = ["scikit-build-core", "cmake", "ninja"]
    subprocess.run([sys.executable, "-m", "pip", "install", "-q", *tools], check=True)
    subprocess.run([*pip, "--no-binary", "llama-cpp-python", release], cwd=CACHE, check=True)
    (archive,) = CACHE.glob("llama_cpp_python-*.tar.gz")
    with tarfile.open(archive) as tar:
        tar.extractall(CACHE, filter="data")
    return CACHE / archive.name.removesuffix(".tar.gz") / "vendor" / "llama.cpp"


def _build(source: Path, into: Path) -> None:
    flags = ["CMAKE_BUILD_TYPE=Release", "LLAMA_CURL=OFF", "LLAMA_OPENSSL=OFF", "LLAMA_BUILD_TESTS=OFF"]
    flags += ["LLAMA_BUILD_EXAMPLES=OFF", "LLAMA_BUILD_WEBUI=OFF", "BUILD_SHARED_LIBS=ON"]
    configure = ["cmake", "-S", str(source), "-B", str(into), "-G", "Ninja", *(f"-D{flag}" for flag in flags)]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(["cmake", "--build", str(into), "--target", "llama-server"], check=True)


AMX_OFF = """
#include <signal.h>
static char small[4096];
__attribute__((constructor)) static void shrink(void) {
    stack_t stack = {.ss_sp = small, .ss_size = sizeof small};
    sigaltstack(&stack, 0);
}
"""


def without_broken_amx() -> dict[str, str]:
    """What llama-server needs in its environment where AMX kernels crash: see `llmrun.llama.amx`, which does
    the same for llmrun. A constructor takes a signal stack too small for AMX state."""
    if not AMX_AVOIDED:
        return {}
    library = CACHE / "amx_off.so"
    if not library.exists():
        source = library.with_suffix(".c")
        source.write_text(AMX_OFF)
        subprocess.run(["cc", "-shared", "-fPIC", "-o", str(library), str(source)], check=True)
    return {"LD_PRELOAD": str(library)}
