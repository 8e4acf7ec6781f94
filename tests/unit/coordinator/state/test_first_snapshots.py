"""A journal whose snapshot was written before the cluster had records of its own still opens. The file was written by
that release: a life with something of everything, then a few records more.
"""

import json
from pathlib import Path
from typing import Any

from strata.clock import ManualClock
from strata.cluster import events as e
from strata.coordinator.engine.snapshots import Snapshots
from strata.coordinator.journal.base import Record, Snapshot, Stored
from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.now import read_clock
from strata.types.checkpoints import CheckpointStatus
from strata.types.tasks import TaskStatus
from strata.types.workers import MemberState
from tests.support.pure_cluster import PureCluster, caller

OLD = json.loads((Path(__file__).parent / "journal_1.json").read_text())


def records(items: list[Any], first: int) -> list[Record]:
    return [Record(first + place, 0.0, kind, json.dumps(body).encode()) for place, (kind, body) in enumerate(items)]


def opened(snapshot: dict[str, Any]) -> PureCluster:
    """As a start of the coordinator does it."""
    taken = Snapshot(100, json.dumps(snapshot).encode(), 1)
    stored = Stored(taken, records(OLD["outcomes"], 1), records(OLD["records"], 101), {})
    box = PureCluster()
    box.clock = ManualClock()
    box.state = ClusterState(StateConfig())
    Snapshots(box.state).restore(stored, read_clock(box.clock))
    return box


def test_everything_is_known_again() -> None:
    box = opened(OLD["snapshot"])
    cluster = box.state.cluster
    assert (cluster.cluster_id, cluster.term) == ("one", 1)
    assert {name: worker.state for name, worker in cluster.workers.items()} == {
        "a": MemberState.READY, "b": MemberState.READY, "c": MemberState.LEFT, "x": MemberState.READY,
        "y": MemberState.LOST, "z": MemberState.LOST,
    }  # fmt: skip
    assert box.ranks() == {"a": 0, "b": 1}
    assert cluster.agents["g"].state is MemberState.LEFT
    assert cluster.datasets["d"].spec.num_shards == 10
    assert cluster.tasks["t"].status is TaskStatus.STOPPED
    statuses = {name: record.status for name, record in cluster.checkpoints.records.items()}
    assert statuses["k"] is CheckpointStatus.REMOVED
    assert (cluster.checkpoints.records["l"].throughput, cluster.checkpoints.records["l"].step) == (2e-06, 2)
    assert list(statuses.values()).count(CheckpointStatus.FAILED) == 2, "one of them since the snapshot: z is lost"
    assert cluster.queues.records["", "q"].num_committed == 4
    assert len(cluster.barriers) == 2


def test_the_same_questions_have_the_same_answers() -> None:
    box = opened(OLD["snapshot"])
    assert box.submit("other", request_id="r").task_id == "t", "a request that was answered before"
    assert box.join("c").rank == 2
    assert box.begin("a", step=9).attempt.endswith("-4"), "attempts are counted on"
    latest = box.ask(c.Recover(caller=caller("x"), job_id="t")).checkpoint
    assert latest is not None
    assert latest.step == 10
    assert box.arrive("a", request_id="a-1", policy="shrink") is not None, "a late retry"


def test_the_next_snapshot_has_todays_form() -> None:
    box = opened(OLD["snapshot"])
    assert box.state.dump()["version"] == 2
    again = box.reloaded()
    assert again.dump() == box.state.dump()


def test_the_oldest_snapshots_hold_ends_of_barriers_and_values_of_env() -> None:
    snapshot = json.loads(json.dumps(OLD["snapshot"]))
    snapshot["barriers"] = [{"kind": kind, "body": json.dumps(body)} for kind, body in OLD["outcomes"]]
    snapshot["tasks"]["tasks"][0]["spec"]["env"] = {"KEY": "hunter2"}
    for name in ("queues", "readings"):
        del snapshot[name]
    box = PureCluster()
    box.state.load(snapshot, box.now())
    assert len(box.state.cluster.barriers) == 2
    assert box.state.cluster.tasks["t"].spec.env == {"KEY": "***"}
    assert not isinstance(box.arrive("a", request_id="a-1", policy="shrink"), e.BarrierBroke)
