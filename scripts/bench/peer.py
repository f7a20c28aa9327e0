"""Server processes for the benchmark: llmrun's, and llama-server built from the same kernels.

llama-server is built from the llama.cpp that ships in llama-cpp-python's source distribution, with the
flags that pip's build uses, into `.cache/bench/`.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import tarfile
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

import httpx
import psutil

from llmrun.llama.library import AMX_AVOIDED

ROOT = Path(__file__).resolve().parents[2]
CACHE = ROOT / ".cache" / "bench"


def llama_server() -> Path:
    """The program; built at the first call, which takes some minutes."""
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
    flags += ["LLAMA_BUILD_EXAMPLES=OFF", "LLAMA_BUILD_WEBUI=OFF"]
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


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


class Process:
    """A server over one model file, until `stop`. `model`: the name that its clients send."""

    def __init__(self, command: list[str], port: int, model: str, env: dict[str, str] | None = None) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.model = model
        self.began = time.perf_counter()
        self._process = subprocess.Popen(
            command, env={**os.environ, **(env or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        self._wait(command[0])

    def _wait(self, program: str) -> None:
        while time.perf_counter() - self.began < 120:
            if self._process.poll() is not None:
                raise RuntimeError(f"{program} ended with {self._process.returncode}")
            try:
                if httpx.get(self.url + "/health", timeout=5).status_code == 200:
                    return
            except httpx.TransportError:
                pass
            time.sleep(0.02)
        raise RuntimeError(f"{program} does not answer")

    def memory(self) -> int:
        """Bytes that it and its children have had at most, as far as that is told: resident, summed."""
        me = psutil.Process(self._process.pid)
        return sum(_peak(process) for process in (me, *me.children(recursive=True)))

    def stop(self) -> None:
        self._process.terminate()
        self._process.wait(60)


def _peak(process: psutil.Process) -> int:
    for line in Path(f"/proc/{process.pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return int(process.memory_info().rss)


class Llmrun:
    """Starts llmrun's daemon over a model, in a home of its own that lasts as long as this."""

    name = "llmrun"

    def __init__(self, model: Path, ctx: int, threads: int) -> None:
        self._home = tempfile.TemporaryDirectory(prefix="llmrun-bench-")
        self._settings = {
            "LLMRUN_HOME": self._home.name,
            "LLMRUN_CTX": str(ctx),
            "LLMRUN_THREADS": str(threads),
            "LLMRUN_KEEP_ALIVE": "-1",
        }
        command = [sys.executable, "-m", "llmrun", "pull", str(model)]
        subprocess.run(command, env={**os.environ, **self._settings}, check=True, capture_output=True)
        self._model = str(model)

    def start(self) -> Process:
        port = free_port()
        env = {**self._settings, "LLMRUN_HOST": f"127.0.0.1:{port}"}
        return Process([sys.executable, "-m", "llmrun", "serve"], port, self._model, env)

    def close(self) -> None:
        self._home.cleanup()


class LlamaServer:
    """Starts llama-server over a model, with further arguments of its own."""

    def __init__(self, model: Path, ctx: int, threads: int, *extra: str) -> None:
        self.name = " ".join(("llama-server", *extra))
        self._env = without_broken_amx()
        self._command = [str(llama_server()), "-m", str(model), "-c", str(ctx), "-t", str(threads), *extra]

    def start(self) -> Process:
        port = free_port()
        return Process([*self._command, "--host", "127.0.0.1", "--port", str(port)], port, "model", self._env)

    def close(self) -> None:
        """Nothing is kept."""
