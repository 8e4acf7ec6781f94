"""Files for operators: units that systemd takes with commands that we have, and what Prometheus and Grafana read."""

import shlex
import shutil
import subprocess
from configparser import ConfigParser
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]  # ships no types

from strata.cli.commands import load

_DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
_UNITS = sorted((_DEPLOY / "systemd").glob("*.service"))


@pytest.mark.parametrize("unit", _UNITS, ids=lambda path: path.name)
def test_a_unit_starts_a_command_with_flags_that_it_knows(unit: Path) -> None:
    parsed = ConfigParser(interpolation=None)
    parsed.optionxform = str  # type: ignore[assignment,method-assign]  # names keep their capitals
    parsed.read_string(unit.read_text())
    program, command, *rest = shlex.split(parsed["Service"]["ExecStart"])
    assert program.endswith("/strata")
    known = load(command)
    flags = {flag for param in known.params for flag in param.opts}
    assert {word for word in rest if word.startswith("--")} <= flags
    assert parsed["Service"]["KillMode"] == "process", "ranks outlive a crash of their agent"
    assert int(parsed["Service"]["TimeoutStopSec"]) > 75, "an agent gives its ranks a minute"


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="systemd is not installed")
def test_systemd_finds_no_fault_but_that_nothing_is_installed() -> None:
    checked = subprocess.run(
        ["systemd-analyze", "verify", *map(str, _UNITS)], capture_output=True, text=True, timeout=60, check=False
    )
    faults = [line for line in checked.stderr.splitlines() if "is not executable" not in line]
    assert faults == []


def test_prometheus_takes_its_configuration() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed; `make promtool` installs it")
    file = _DEPLOY / "prometheus" / "prometheus.yaml"
    command = [promtool, "check", "config", "--syntax-only", str(file)]
    checked = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert checked.returncode == 0, checked.stdout + checked.stderr
    assert [(file.parent / name).exists() for name in yaml.safe_load(file.read_text())["rule_files"]] == [True]


_MANIFESTS = sorted((_DEPLOY / "kubernetes").glob("*.yaml"))


@pytest.mark.launchers
@pytest.mark.parametrize("manifest", _MANIFESTS, ids=lambda path: path.name)
def test_kubernetes_schemas_take_every_object(manifest: Path) -> None:
    kubernetes_validate = pytest.importorskip("kubernetes_validate", reason="make test-launchers installs it")
    for item in yaml.safe_load_all(manifest.read_text()):
        kubernetes_validate.validate(item, "1.31", strict=True)


def test_the_head_in_kubernetes_starts_a_command_with_flags_that_it_knows() -> None:
    *_, head = yaml.safe_load_all((_DEPLOY / "kubernetes" / "head.yaml").read_text())
    (container,) = head["spec"]["template"]["spec"]["containers"]
    command, *rest = container["args"]
    known = load(command)
    assert {word for word in rest if word.startswith("--")} <= {flag for param in known.params for flag in param.opts}
    assert [port["containerPort"] for port in container["ports"]] == [50051, 50052, 3000]
