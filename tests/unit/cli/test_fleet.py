"""The agents of one `strata run`, here as real processes of this host: what is said when they do not come."""

import os
import sys
from pathlib import Path

import pytest

from strata.cli.fleet import Fleet, FleetRequest, _settings, _storage, open_fleet
from strata.client.endpoints import Endpoints
from strata.client.tasks import TaskView
from strata.config import Settings, load_settings
from strata.errors import InvalidArgument, ProcessFailed, Unavailable
from strata.launchers.fleet import FleetSpec
from strata.launchers.local import LocalLauncher
from strata.types.tasks import TaskSpec, TaskStatus
from tests.support.waiting import eventually

_ENDPOINTS = Endpoints(grpc="127.0.0.1:1")


def _task(status: TaskStatus = TaskStatus.QUEUED) -> TaskView:
    return TaskView(
        task_id="t",
        spec=TaskSpec(name="t", worker_count=4),
        status=status,
        reason="waiting for 4 slots: no ssh agent is attached",
        submitted_at=0.0,
    )


def _fleet(folder: Path, python: str, lines: list[str]) -> Fleet:
    fleet = FleetSpec(launcher="ssh", coordinator="", folder=folder, num_agents=2, slots_per_agent=2, python=python)
    return Fleet(LocalLauncher(), fleet, lines.append)


def _program(folder: Path, text: str) -> str:
    """Stands for an interpreter on another host."""
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def test_agents_that_end_are_told_with_their_last_words(tmp_path: Path) -> None:
    fleet = _fleet(tmp_path / "fleet", _program(tmp_path, "echo no module named strata; exit 1"), [])
    fleet.prepare()
    fleet.start(_ENDPOINTS, "t")
    with pytest.raises(ProcessFailed, match="asked ssh for 2 agents with 2 slots each, but they have ended") as failed:
        eventually("the end", lambda: fleet.look(_task(TaskStatus.RUNNING), attach_s=0.01))
    assert "their last words: no module named strata" in failed.value.message
    assert "The coordinator listens on loopback" in failed.value.hint
    fleet.stop()


def test_agents_that_run_and_never_attach_are_given_up(tmp_path: Path) -> None:
    lines: list[str] = []
    fleet = _fleet(tmp_path / "fleet", _program(tmp_path, "exec sleep 60"), lines)
    fleet.prepare()
    fleet.start(_ENDPOINTS, "t")
    with pytest.raises(ProcessFailed, match="still waiting for 4 slots: no ssh agent is attached"):
        eventually("the end of patience", lambda: fleet.look(_task(), attach_s=0.1))
    fleet.look(_task(TaskStatus.RUNNING), attach_s=0.0)
    fleet.stop()
    fleet.stop()
    assert lines[0].startswith("The coordinator listens on loopback")
    assert lines[1] == "asking ssh for 2 agents with 2 slots each"
    assert lines[2].endswith(" runs")


@pytest.mark.parametrize(
    ("request_", "told"),
    [
        (FleetRequest(launcher="slurm", workers=2, nodes=3), "3 nodes for 2 workers"),
        (FleetRequest(launcher="slurm", workers=2, options=("=gpu",)), "'=gpu' is neither NAME=VALUE nor NAME"),
        (FleetRequest(launcher="local", workers=2, nodes=2), "--launcher"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, request_: FleetRequest, told: str) -> None:
    with pytest.raises(InvalidArgument, match=told):
        open_fleet(request_, Settings(data_dir=tmp_path), print)


@pytest.mark.parametrize(
    ("settings", "given", "passed"),
    [
        ({}, {"AWS_REGION": "x"}, {}),
        ({"checkpoint_bucket": "/mnt/shared/"}, {}, {"STRATA_CHECKPOINT_BUCKET": "/mnt/shared"}),
        (
            {"storage_backend": "s3", "checkpoint_bucket": "models"},
            {"AWS_SESSION_TOKEN": "s", "STRATA_AWS_REGION": "r", "AWSOME": "no"},
            {"STRATA_CHECKPOINT_BUCKET": "s3://models", "AWS_SESSION_TOKEN": "s", "STRATA_AWS_REGION": "r"},
        ),
        (
            {"storage_backend": "s3", "checkpoint_bucket": "gs://models"},
            {"GOOGLE_SERVICE_ACCOUNT": "/key.json", "AZURE_STORAGE_ACCOUNT_KEY": "k"},
            {
                "STRATA_CHECKPOINT_BUCKET": "gs://models",
                "GOOGLE_SERVICE_ACCOUNT": "/key.json",
                "AZURE_STORAGE_ACCOUNT_KEY": "k",
            },
        ),
    ],
)
def test_agents_get_what_their_store_needs(
    settings: dict[str, str], given: dict[str, str], passed: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in [name for name in os.environ if name.startswith(("AWS", "AZURE", "GOOGLE", "STRATA_"))]:
        monkeypatch.delenv(name)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    found = _storage(load_settings(settings))
    found.pop("STRATA_STORAGE_BACKEND", None)
    assert found == passed


def test_agents_get_the_settings_that_are_theirs_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.startswith("STRATA_")]:
        monkeypatch.delenv(name)
    theirs = {"STRATA_NOTICE_URL": "http://metadata/preempted", "STRATA_SCRUB_MB_S": "0", "RUST_LOG": "debug"}
    ours = {"STRATA_HOST": "10.0.0.5", "STRATA_JOURNAL": "postgresql://u:p@h/d", "CH_PASSWORD": "p"}
    for name, value in {**theirs, **ours}.items():
        monkeypatch.setenv(name, value)
    assert _settings() == theirs


def test_local_needs_no_fleet(tmp_path: Path) -> None:
    assert open_fleet(FleetRequest(launcher="local", workers=2), Settings(data_dir=tmp_path), print) is None


def test_a_scheduler_that_is_not_there_is_told_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(Unavailable, match="sbatch is not installed here") as refused:
        open_fleet(FleetRequest(launcher="slurm", workers=2), Settings(data_dir=tmp_path), print)
    assert refused.value.hint == "Run this on a Slurm login node."
    with pytest.raises(Unavailable, match="ssh is not installed here"):
        open_fleet(FleetRequest(launcher="ssh", workers=2, options=("host=n",)), Settings(data_dir=tmp_path), print)


def test_a_missing_ray_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)  # as if it were not installed
    with pytest.raises(Exception, match=r"ray") as refused:
        open_fleet(FleetRequest(launcher="ray", workers=2), Settings(data_dir=tmp_path), print)
    assert type(refused.value).__name__ == "MissingExtra"
