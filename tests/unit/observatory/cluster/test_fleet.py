"""All workers as one picture, and their rows page by page."""

import json
from typing import Any

import pytest

from strata.clock import ManualClock
from strata.cluster import events as ev
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster import fleet as module
from strata.observatory.cluster.fleet import FleetQuery, fleet, fleet_page
from strata.observatory.cluster.followed import FollowedCluster
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.cluster.vitals import WorkerVitals
from strata.observatory.stream.broadcaster import Broadcaster
from tests.support.answers import partly


def joined(rank: int, task_id: str = "t", *, host: str = "") -> ev.WorkerJoined:
    return ev.WorkerJoined(
        worker_id=f"{task_id or 'plain'}-{rank}", task_id=task_id, incarnation="i", rank=rank, generation=1,
        hostname=host or f"h{rank // 2}", port=1, gpu_count=0, memory_bytes=3, agent_id="", metadata={}, at=100.0,
    )  # fmt: skip


def lost(*names: str) -> ev.MembersLost:
    return ev.MembersLost(
        task_id="t", generation=2, worker_ids=names, reasons=("gone",) * len(names), left=False, at=101.0
    )


@pytest.fixture
def cluster() -> FollowedCluster:
    """Six ranks of a task on three hosts, one of them dead, one suspect, one slow; and one worker of no task."""
    found = FollowedCluster()
    for event in (*(joined(rank) for rank in range(6)), joined(7, ""), lost("t-5")):
        found.apply(event)
    vitals = {
        f"t-{rank}": WorkerVitals(state="training", member_state="ready", step_time_s=0.5, current_step=rank)
        for rank in range(4)
    }
    vitals["t-2"] = WorkerVitals(state="training", member_state="ready", step_time_s=2.0, current_step=9)
    vitals["t-3"] = WorkerVitals(state="training", member_state="suspect", step_time_s=float("nan"))
    found.set_vitals(vitals, [], {})
    return found


def test_a_letter_for_each_worker(cluster: FollowedCluster) -> None:
    plain, task = fleet(cluster).groups
    assert (plain.task_id, plain.states, plain.ranks) == (None, "i", [7])
    assert (task.task_id, task.states, task.ranks, task.host_sizes) == ("t", "aaasif", None, [2, 2, 2])
    assert (task.counts, task.suspect) == ({"active": 4, "idle": 1, "failed": 1}, 1)


def test_who_is_slow(cluster: FollowedCluster) -> None:
    task = fleet(cluster).groups[1]
    assert task.step_time_s is not None
    assert (task.step_time_s.least, task.step_time_s.median, task.step_time_s.most) == (0.5, 0.5, 2.0)
    assert (task.slowest[0].worker_id, task.slowest[0].ratio) == ("t-2", 4.0)
    assert task.step is not None
    assert (task.step.least, task.step.most) == (0, 9)


def test_a_fleet_of_nobody() -> None:
    assert fleet(FollowedCluster()).groups == []
    (alone,) = fleet(_of(joined(0))).groups
    assert (alone.step, alone.step_time_s, alone.slowest) == (None, None, [])


def _of(*events: ev.Event) -> FollowedCluster:
    found = FollowedCluster()
    for event in events:
        found.apply(event)
    return found


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, ["plain-7", "t-0", "t-1", "t-2", "t-3", "t-4", "t-5"]),
        ({"task_id": ""}, ["plain-7"]),
        ({"task_id": "t", "rank": 4}, ["t-4"]),
        ({"worker_id": "t-3"}, ["t-3"]),
        ({"status": "suspect"}, ["t-3"]),
        ({"status": "failed"}, ["t-5"]),
        ({"status": "active", "text": "H1"}, ["t-2"]),
        ({"text": "nobody"}, []),
    ],
)
def test_rows_that_are_asked_for(cluster: FollowedCluster, query: dict[str, Any], names: list[str]) -> None:
    found = fleet_page(cluster, FleetQuery(**query), 0, 100)
    assert ([one.id for one in found.workers], found.total) == (names, len(names))
    part = fleet_page(cluster, FleetQuery(**query), 1, 2)
    assert ([one.id for one in part.workers], part.total) == (names[1:3], len(names))


def test_the_stream_of_a_folded_fleet_names_nobody(cluster: FollowedCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    clock = ManualClock()
    stream = Broadcaster(lambda _: b"{}", clock)
    published = PublishedCluster(stream, clock, lambda: partly(Status), SetAside(clock, lambda _: None))
    published.followed = cluster
    told = {name: json.loads(body) for name, body in published.sparse().items()}
    assert len(told["workers"]) == told["fleet"]["total"] == 7
    monkeypatch.setattr(module, "FOLDED", 6)
    cluster.dirty.add("workers")
    told = {name: json.loads(body) for name, body in published.sparse().items()}
    assert (told["workers"], told["fleet"]["folded"]) == ([], True)
    assert len(json.loads(published.body("workers"))) == 7, "REST still has them all"


def test_who_asks_by_rest_does_not_keep_the_news_from_the_stream(cluster: FollowedCluster) -> None:
    clock = ManualClock()
    stream = Broadcaster(lambda _: b"{}", clock)
    published = PublishedCluster(stream, clock, lambda: partly(Status), SetAside(clock, lambda _: None))
    published.followed = cluster
    published.publish()
    before = stream.last_seq
    cluster.apply(joined(6))
    published.body("workers")
    published.publish()
    assert stream.last_seq == before + 1
