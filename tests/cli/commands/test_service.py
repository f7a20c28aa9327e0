"""`llmrun service` with a systemctl that notes what it was told."""

from __future__ import annotations

import json
import os
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.cli.conftest import Done, Shell

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="systemd is Linux's")

FAKE = """#!/bin/sh
echo "$@" >> {log}
case "$*" in
  *is-active*) [ -e {state} ] ;;
  *enable*--now*) touch {state} ;;
  *disable*--now*) rm -f {state} ;;
esac
"""


@dataclass
class Systemd:
    """A shell with a fake systemctl; `told` is what that was told since it was last asked."""

    shell: Shell
    unit: Path
    log: Path

    def run(self, *words: str) -> Done:
        return self.shell.run("service", *words)

    def told(self) -> list[str]:
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.unlink(missing_ok=True)
        return [line.removeprefix("--user ") for line in lines]


@pytest.fixture
def systemd(shell: Shell, tmp_path: Path) -> Systemd:
    program = tmp_path / "bin" / "systemctl"
    program.parent.mkdir()
    log = tmp_path / "told"
    program.write_text(FAKE.format(log=log, state=tmp_path / "running"))
    program.chmod(0o755)
    shell.env |= {
        "PATH": f"{program.parent}{os.pathsep}{os.environ['PATH']}",
        "XDG_CONFIG_HOME": str(tmp_path / "config"),
    }
    return Systemd(shell, tmp_path / "config" / "systemd" / "user" / "llmrun.service", log)


def test_install_writes_the_unit_and_starts_it(systemd: Systemd) -> None:
    systemd.shell.env["LLMRUN_PARALLEL"] = "4"
    done = systemd.run("install")
    assert done.code == 0
    assert "is written" in done.err
    text = systemd.unit.read_text()
    assert f'"{sys.executable}" "-m" "llmrun" "serve"' in text
    assert 'Environment="LLMRUN_PARALLEL=4"' in text
    assert f'Environment="LLMRUN_HOME={systemd.shell.env["LLMRUN_HOME"]}"' in text
    assert Path(systemd.shell.env["LLMRUN_HOME"], "models").is_dir()
    assert systemd.told() == [
        "is-active --quiet llmrun.service",
        "daemon-reload",
        "enable --now llmrun.service",
    ]


def test_install_again_changes_nothing_and_renews_what_settings_change(systemd: Systemd) -> None:
    systemd.run("install")
    text = systemd.unit.read_text()
    again = systemd.run("install")
    assert (again.code, systemd.unit.read_text()) == (0, text)
    assert "is up to date" in again.err
    systemd.told()
    systemd.shell.env["LLMRUN_CTX"] = "4096"
    assert "is renewed" in systemd.run("install").err
    assert "LLMRUN_CTX=4096" in systemd.unit.read_text()
    assert systemd.told()[-1] == "restart llmrun.service"


def test_install_and_uninstall_keep_an_edited_unit(systemd: Systemd) -> None:
    systemd.run("install")
    edited = systemd.unit.read_text() + "Nice=5\n"
    systemd.unit.write_text(edited)
    for word in ("install", "uninstall"):
        done = systemd.run(word)
        assert done.code == 0
        assert "was edited and is kept" in done.err
        assert systemd.unit.read_text() == edited
    assert json.loads(systemd.run("status", "--json").out)["edited"] is True
    systemd.run("install", "--force")
    assert "Nice" not in systemd.unit.read_text()


def test_install_keeps_the_api_key_out_of_the_unit(systemd: Systemd) -> None:
    systemd.shell.env["LLMRUN_API_KEY"] = "secret"
    done = systemd.run("install")
    assert "secret" not in systemd.unit.read_text()
    assert "LLMRUN_API_KEY is not written" in done.err


def test_install_without_systemd_says_what_to_type(systemd: Systemd, tmp_path: Path) -> None:
    systemd.shell.env["PATH"] = str(tmp_path / "nothing")
    done = systemd.run("install")
    assert done.code == 0
    assert systemd.unit.exists()
    assert "type: systemctl --user daemon-reload && systemctl --user enable --now llmrun.service" in done.err


def test_uninstall_ends_and_removes_it_and_once_more_is_harmless(systemd: Systemd) -> None:
    systemd.run("install")
    systemd.told()
    assert systemd.run("uninstall").code == 0
    assert not systemd.unit.exists()
    assert systemd.told() == ["disable --now llmrun.service", "daemon-reload"]
    done = systemd.run("uninstall")
    assert (done.code, done.err) == (0, "no service is installed\n")


def test_uninstall_of_all_lists_the_service_and_takes_it_too(systemd: Systemd, home: Path) -> None:
    systemd.run("install")
    systemd.shell.env["HOME"] = str(home.parent)
    assert str(systemd.unit) in systemd.shell.run("uninstall").out
    systemd.told()
    done = systemd.shell.run("uninstall", "--purge", "--yes")
    assert (done.code, systemd.unit.exists(), home.exists()) == (0, False, False)
    assert systemd.told() == ["disable --now llmrun.service", "daemon-reload"]


def test_status_follows_what_was_done(systemd: Systemd) -> None:
    before = json.loads(systemd.run("status", "--json").out)
    assert (before["installed"], before["running"], before["enabled"]) == (False, False, False)
    systemd.run("install")
    after = json.loads(systemd.run("status", "--json").out)
    assert (after["installed"], after["running"], after["edited"]) == (True, True, False)
    assert after["unit"] == str(systemd.unit)
    assert "running    yes\n" in systemd.run("status").out
