"""`llmrun doctor` as a whole."""

from __future__ import annotations

import json

import pytest

from llmrun.cli.commands import doctor
from llmrun.cli.doctor.finding import broken, ok, warning
from tests.cli.conftest import Shell


@pytest.fixture(autouse=True)
def offline(shell: Shell) -> None:
    shell.env["HF_HUB_OFFLINE"] = "1"


FINDINGS = [ok("a", "fine"), warning("b", "slow", "close programs")]


def test_report_shows_each_finding_and_the_mend(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda _: FINDINGS)
    done = shell.run("doctor")
    assert done.code == 0
    assert done.out == (
        "ok       a          fine\nwarning  b          slow\n                    mend: close programs\n"
    )
    assert shell.run("doctor", "--quiet").out.startswith("warning")


def test_report_something_broken_is_exit_code_1(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "examine", lambda _: [*FINDINGS, broken("c", "gone", "get it")])
    done = shell.run("doctor", "--json")
    assert done.code == 1
    assert json.loads(done.out)[-1] == {"subject": "c", "level": "broken", "text": "gone", "mend": "get it"}


def test_doctor_here_looks_at_everything(shell: Shell) -> None:
    done = shell.run("doctor", "--json")
    assert done.code == 0, done.out
    subjects = {finding["subject"] for finding in json.loads(done.out)}
    assert subjects >= {
        "llmrun", "system", "processor", "memory", "llama.cpp",
        "devices", "folders", "disk", "models", "daemon", "kv cache", "hub",
    }  # fmt: skip


def test_doctor_wrong_setting_is_a_finding(shell: Shell) -> None:
    shell.env["LLMRUN_CTX"] = "plenty"
    done = shell.run("doctor", "--json")
    assert done.code == 1
    assert "LLMRUN_CTX" in json.loads(done.out)[-1]["text"]
