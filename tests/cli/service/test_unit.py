from __future__ import annotations

import configparser
import plistlib
import shutil
import subprocess
from pathlib import Path

import pytest

from llmrun.cli.service.unit import Spec, is_edited, launchd_agent, systemd_unit

SPEC = Spec(
    command=("/opt/my env/bin/python", "-m", "llmrun", "serve"),
    env={"LLMRUN_HOME": '/data/100% "mine"', "LLMRUN_PARALLEL": "4"},
    writable=(Path("/data/models"), Path("/data/my cache")),
    log=Path("/data/logs/daemon.log"),
)


def parsed(text: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read_string(text)
    return parser


def test_systemd_unit_runs_the_command_with_few_rights() -> None:
    unit = parsed(systemd_unit(SPEC))["Service"]
    assert unit["ExecStart"] == '"/opt/my env/bin/python" "-m" "llmrun" "serve"'
    assert unit["ReadWritePaths"] == '"/data/models" "/data/my cache"'
    for name in ("NoNewPrivileges", "PrivateTmp", "RestrictNamespaces", "RestrictSUIDSGID"):
        assert unit[name] == "yes"
    assert unit["ProtectSystem"] == "strict"


def test_systemd_unit_escapes_what_systemd_would_read_otherwise() -> None:
    assert 'Environment="LLMRUN_HOME=/data/100%% \\"mine\\""\n' in systemd_unit(SPEC)
    odd = Spec(("/bin/a$b",), {}, (Path("/x"),), SPEC.log)
    assert 'ExecStart="/bin/a$$b"\n' in systemd_unit(odd)


def test_systemd_unit_over_a_temporary_folder_sees_that_folder() -> None:
    assert "PrivateTmp" not in systemd_unit(Spec(SPEC.command, {}, (Path("/tmp/home/models"),), SPEC.log))


def test_systemd_unit_is_accepted_by_systemd(tmp_path: Path) -> None:
    verify = shutil.which("systemd-analyze")
    if verify is None:
        pytest.skip("no systemd-analyze here")
    unit = tmp_path / "llmrun.service"
    unit.write_text(systemd_unit(Spec(("/bin/true",), SPEC.env, SPEC.writable, SPEC.log)))
    done = subprocess.run([verify, "--user", "verify", str(unit)], capture_output=True, text=True)
    assert "llmrun.service" not in done.stderr


def test_launchd_agent_is_a_property_list() -> None:
    agent = plistlib.loads(launchd_agent(SPEC).encode())
    assert agent["ProgramArguments"] == list(SPEC.command)
    assert agent["EnvironmentVariables"] == SPEC.env
    assert agent["KeepAlive"] == {"SuccessfulExit": False}
    assert agent["StandardErrorPath"] == "/data/logs/daemon.log"


@pytest.mark.parametrize("make", [systemd_unit, launchd_agent])
def test_is_edited_sees_any_change(make: object) -> None:
    text = make(SPEC)  # type: ignore[operator]
    assert not is_edited(text)
    assert is_edited(text.replace("serve", "serve --host 0.0.0.0"))
    assert is_edited(text + "\n")
    assert is_edited("[Unit]\n")
    assert is_edited("")
