"""kill -9 at every named step of a save: what is there afterwards is complete, and training goes on from it."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager
from strata.checkpoint.faults import POINTS, parse_fault
from strata.errors import InvalidConfig
from tests.integration.checkpoint.training import weights
from tests.support.coordinator_process import CoordinatorProcess

_SCRIPT = Path(__file__).with_name("training.py")
_ROOT = Path(__file__).parents[3]
_COMMITTERS = ("votes_in", "before_commit", "committed", "published", "retired")
_AFTER_COMMIT = ("committed", "published", "retired")


def _points(points: Iterable[str], *soon: str) -> list[Any]:
    """Those that are not named are for `make test-all`."""
    return [point if point in soon else pytest.param(point, marks=pytest.mark.slow) for point in points]


def _launch(folder: Path, *arguments: object) -> tuple[int, list[dict[str, Any]]]:
    scratch = folder.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    command = [sys.executable, str(_SCRIPT), str(folder), "--scratch", str(scratch), *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(_ROOT)}
    done = subprocess.run(command, capture_output=True, text=True, timeout=250, env=environment, check=False)
    assert "Traceback" not in done.stderr, done.stderr
    return done.returncode, sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda r: r["rank"])


def _fault(point: str) -> str:
    """The second save dies; a chunk is the last of its save, and the first removal comes with the second save."""
    return f"{point}:kill@{ {'data_part': 4, 'retired': 1}.get(point, 2) }"


def _assert_complete(folder: Path, world: int, allowed: set[int]) -> int:
    """Whatever is visible is whole: every committed step passes the deep check and holds the right weights."""
    manager = CheckpointManager(folder)
    latest = manager.get_latest()
    assert latest is not None
    assert latest.step in allowed
    for info in manager.list():
        assert manager.verify(info.step, deep=True).verified
        for rank in range(world):
            state = manager.load(info.step, rank=rank, world_size=world)
            assert np.array_equal(state["w"], weights(info.step, rank))
            assert state["step"] == info.step
    return latest.step


@pytest.mark.parametrize(
    "point", _points(POINTS, "copying", "data_part", "manifest_durable", "before_commit", "committed")
)
def test_one_process(tmp_path: Path, point: str) -> None:
    folder = tmp_path / "ckpt"
    keep = 1 if point == "retired" else 3
    sliced = ("--sliced",) if point == "copying" else ()
    code, reports = _launch(folder, "--keep", keep, "--fault", _fault(point), *sliced)
    assert (code, reports) == (9, [])
    latest = _assert_complete(folder, 1, {2} if point in _AFTER_COMMIT else {1})
    code, reports = _launch(folder, "--keep", keep)
    assert (code, reports) == (0, [{"rank": 0, "began": latest, "ended": 3}])
    assert _assert_complete(folder, 1, {3}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("point", _points(POINTS, "committed"))
def test_four_ranks(tmp_path: Path, point: str) -> None:
    """About 2 s each: eight processes per case, all writing and syncing on the same disk."""
    folder = tmp_path / "ckpt"
    keep = 1 if point == "retired" else 3
    victim = 0 if point in _COMMITTERS else 2
    ranks = ("--world", 4, "--keep", keep)
    sliced = ("--sliced",) if point == "copying" else ()
    code, _ = _launch(folder, *ranks, "--fault", _fault(point), "--fault-rank", victim, *sliced)
    assert code == 9
    # A manifest is a rank's vote: once the last one is there, any rank may commit for the others.
    allowed = {2} if point in _AFTER_COMMIT else {1, 2} if point in ("manifest_durable", "voted") else {1}
    latest = _assert_complete(folder, 4, allowed)
    code, reports = _launch(folder, *ranks, "--generation", 2)
    assert code == 0
    assert reports == [{"rank": rank, "began": latest, "ended": 3} for rank in range(4)]
    assert _assert_complete(folder, 4, {3}) == 3


def test_the_first_save_of_all_leaves_nothing_to_resume_from(tmp_path: Path) -> None:
    folder = tmp_path / "ckpt"
    code, _ = _launch(folder, "--fault", "before_commit:kill")
    assert code == 9
    assert CheckpointManager(folder).get_latest() is None
    assert CheckpointManager(folder).list() == []
    code, reports = _launch(folder, "--steps", 1)
    assert (code, reports) == (0, [{"rank": 0, "began": 0, "ended": 1}])


@pytest.mark.slow
def test_survivors_are_told_who_is_missing(tmp_path: Path) -> None:
    """Waits out a deadline of 4 s: the survivors must find out by themselves."""
    folder = tmp_path / "ckpt"
    code, _ = _launch(folder, "--world", 3, "--steps", 1)
    assert code == 0
    short = ("--world", 3, "--generation", 2, "--deadline", 4, "--alone")
    code, reports = _launch(folder, *short, "--fault", "data_sent:kill", "--fault-rank", 1)
    assert code == 9
    assert [report["rank"] for report in reports] == [0, 2]
    for report in reports:
        assert report["began"] == 1
        assert report["error"].startswith("CheckpointAborted")
        assert re.search(r"missing ranks? .*\b1\b", report["error"])  # a crawling machine may add others
    _assert_complete(folder, 3, {1})


@pytest.mark.parametrize("point", _points(["voted", "votes_in", "before_commit", "committed"], "before_commit"))
def test_a_dead_committer_is_replaced_long_before_the_deadline(tmp_path: Path, point: str) -> None:
    """Up to 8 s: ranks without a coordinator give the committer three seconds before they doubt it."""
    folder = tmp_path / "ckpt"
    alone = ("--world", 4, "--steps", 2, "--deadline", 600, "--alone")
    code, reports = _launch(folder, *alone, "--fault", f"{point}:kill@2", "--fault-rank", 0)
    assert code == 9
    assert reports == [{"rank": rank, "began": 0, "ended": 2} for rank in (1, 2, 3)]
    assert _assert_complete(folder, 4, {2}) == 2


@pytest.fixture(scope="module")
def coordinator(tmp_path_factory: pytest.TempPathFactory) -> Iterator[CoordinatorProcess]:
    folder = tmp_path_factory.mktemp("coordinator")
    with CoordinatorProcess(folder, HEARTBEAT_TIMEOUT="2") as process:
        yield process


@pytest.mark.parametrize(
    "point", _points(["data_sent", "voted", "votes_in", "before_commit", "committed"], "before_commit")
)
def test_a_coordinator_ends_what_a_dead_committer_began(
    tmp_path: Path, coordinator: CoordinatorProcess, point: str
) -> None:
    """Up to 8 s: nobody but a silent lease of two seconds tells the coordinator of the death."""
    folder = tmp_path / "ckpt"
    alone = ("--world", 4, "--steps", 2, "--deadline", 600, "--alone", "--coordinator", coordinator.address)
    code, reports = _launch(folder, *alone, "--fault", f"{point}:kill@2", "--fault-rank", 0)
    assert code == 9
    assert [report["rank"] for report in reports] == [1, 2, 3]
    records = [each for each in coordinator.state()["checkpoints"] if each["path"].startswith(str(folder))]
    assert [record["path"].rpartition("/")[2] for record in records] == ["step-000000000001", "step-000000000002"]
    if point == "data_sent":  # its bytes are not known to be there: the step is given up, and the dead one is named
        assert all("missing rank 0" in report["error"] for report in reports)
        assert [record["status"] for record in records] == ["completed", "failed"]
        _assert_complete(folder, 4, {1})
    else:  # every byte is there: another rank commits
        assert reports == [{"rank": rank, "began": 0, "ended": 2} for rank in (1, 2, 3)]
        assert [record["status"] for record in records] == ["completed", "completed"]
        _assert_complete(folder, 4, {2})


def test_a_coordinator_hears_what_retention_deletes(tmp_path: Path, coordinator: CoordinatorProcess) -> None:
    folder = tmp_path / "ckpt"
    code, _ = _launch(folder, "--world", 2, "--steps", 3, "--keep", 1, "--coordinator", coordinator.address)
    assert code == 0
    records = [each for each in coordinator.state()["checkpoints"] if each["path"].startswith(str(folder))]
    assert [record["status"] for record in records] == ["removed", "removed", "completed"]
    assert "keep_count is 1" in records[0]["reason"]


def test_a_fault_must_name_a_known_point() -> None:
    assert parse_fault("") is None
    for text in ("nowhere:kill", "begun:explode", "begun:kill@x", "begun"):
        with pytest.raises(InvalidConfig, match="STRATA_FAULT"):
            parse_fault(text)
