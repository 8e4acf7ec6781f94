"""Every end of a script is an end of its run, found from another folder than `strata up`'s, kept over a restart."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.error import URLError

import pytest

from strata.client.endpoints import announced, find_observatory
from strata.config import Settings
from tests.support.cluster import Cluster, strata
from tests.support.nodes import wait_for
from tests.support.waiting import eventually

_SCRIPT = """
import os, signal, sys, time
import strata

run = strata.init(name=sys.argv[1], run_id=sys.argv[1])
run.log({"loss": 1.0}, step=1)
%s
"""
_SEND = "run.reporter.secure(); assert run.reporter.outbox.flush(60)\n"

ENDS = {
    "finished": ("run.finish()", "finished", None),
    "no-finish": ("pass", "finished", "the script ended without finish()"),
    "raised": ("raise ValueError('no luck')", "failed", "ValueError: no luck"),
    "exit-3": ("sys.exit(3)", "failed", "sys.exit(3)"),
    "exit-0": ("sys.exit()", "finished", "the script ended without finish()"),
    "in-with": ("with run: raise OSError('inside')", "failed", "OSError: inside"),
    "ctrl-c": ("os.kill(os.getpid(), signal.SIGINT); time.sleep(60)", "killed", "Ctrl-C"),
    "kill-9": (
        _SEND + "os.kill(os.getpid(), signal.SIGKILL)",
        "killed",
        "its process is gone and did not say why",
    ),
    "sigterm": (
        _SEND + "os.kill(os.getpid(), signal.SIGTERM); time.sleep(60)",
        "killed",
        "its process is gone and did not say why",
    ),
}


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Cluster]:
    with Cluster(tmp_path / "strata", "--no-agent", environment={"HEARTBEAT_TIMEOUT": "10"}) as cluster:
        eventually(
            "its note, which comes last", (Path(os.environ["XDG_RUNTIME_DIR"]) / "strata" / "endpoints.json").exists
        )
        yield cluster


def _start(folder: Path, name: str, ending: str) -> "subprocess.Popen[str]":
    folder.mkdir(parents=True, exist_ok=True)
    script = folder / f"{name}.py"
    script.write_text(_SCRIPT % ending)
    command = [sys.executable, str(script), name]
    return subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)


def _runs(up: Cluster) -> dict[str, dict[str, Any]]:
    try:
        return {run["run_id"]: run for run in up.get("/api/runs")}
    except (URLError, OSError, KeyError):
        return {}  # it is being started anew


def _states(up: Cluster) -> dict[str, tuple[str, str | None, bool]]:
    return {name: (run["state"], run["reason"], run["is_active"]) for name, run in _runs(up).items()}


@pytest.mark.slow
def test_every_end_of_a_script_is_an_end_of_its_run(up: Cluster, tmp_path: Path) -> None:
    scripts = {name: _start(tmp_path / "elsewhere", name, ending) for name, (ending, _, _) in ENDS.items()}
    said = {name: script.communicate(timeout=180)[1] for name, script in scripts.items()}
    for name, words in said.items():
        assert f"strata: run {name}: {up.endpoints['http']}/ui/runs/{name}\n" in words, words
    expected = {name: (state, reason, False) for name, (_, state, reason) in ENDS.items()}
    wait_for(lambda: _states(up) == expected, 90, "the ends as they were")

    listed = strata("runs", "--data-dir", str(up.folder)).stdout
    assert "ValueError: no luck" in " ".join(listed.split())

    before = up.pid_of("observatory")
    assert before is not None
    os.kill(before, signal.SIGKILL)
    wait_for(lambda: up.pid_of("observatory") not in (None, before), 90, "another observatory")
    seen: set[str] = set()

    def all_back() -> bool:
        found = _states(up)
        seen.update(name for name, (_, _, active) in found.items() if active)
        return found == expected

    wait_for(all_back, 90, "the same ends after a restart")
    assert seen == set()


@pytest.mark.slow
def test_a_silent_run_is_lost_until_it_is_heard_again(up: Cluster, tmp_path: Path) -> None:
    script = _start(tmp_path / "elsewhere", "silent", "time.sleep(600)")
    try:
        wait_for(lambda: _states(up).get("silent") == ("running", None, True), 90, "the run")
        script.send_signal(signal.SIGSTOP)
        lost = ("lost", "nothing was heard of it for 10 s", False)
        wait_for(lambda: _states(up).get("silent") == lost, 90, "a lost run")
        script.send_signal(signal.SIGCONT)
        wait_for(lambda: _states(up).get("silent") == ("running", None, True), 90, "it is back")
    finally:
        script.kill()
        script.communicate(timeout=60)


def test_without_a_server_the_folder_and_the_command_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nobody"))  # not where a cluster of other tests is noted
    words = _start(tmp_path, "alone", "assert run.finish() is False").communicate(timeout=90)[1]
    folder = tmp_path / ".strata"
    assert words == (
        f"strata: run alone: no observatory is known here; its points are kept in {folder}/offline/alone until "
        f"`strata sync alone --data-dir {folder}` sends them\n"
    )


@pytest.mark.slow
@pytest.mark.parametrize("variable", ["STRATA_TELEMETRY_ADDR", "COORDINATOR_ADDR"])
def test_what_is_exported_says_where_metrics_go(
    up: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "nobody"))
    telemetry = up.endpoints["telemetry"]
    monkeypatch.setenv(variable, telemetry if variable == "STRATA_TELEMETRY_ADDR" else up.endpoints["grpc"])
    if variable == "COORDINATOR_ADDR":
        monkeypatch.setenv("STRATA_TELEMETRY_PORT", telemetry.rpartition(":")[2])
    monkeypatch.setenv("STRATA_QUIET", "1")
    words = _start(tmp_path / "elsewhere", "told", "assert run.finish(timeout_s=60.0)").communicate(timeout=120)[1]
    assert words == ""
    wait_for(lambda: _states(up).get("told") == ("finished", None, False), 30, "the run")


def test_the_note_of_another_user_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One that others may write to is as bad: they could have the metrics sent to themselves."""
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    settings = Settings(data_dir=tmp_path / "elsewhere")
    with announced({"http": "http://127.0.0.1:1", "telemetry": "127.0.0.1:1"}, tmp_path):
        assert find_observatory(settings) is not None
        (tmp_path / "strata" / "endpoints.json").chmod(0o666)
        assert find_observatory(settings) is None
        words = _start(tmp_path / "elsewhere", "wary", "run.finish()").communicate(timeout=90)[1]
    assert "no observatory is known here" in words
