"""Detectors over events, vitals and silence."""

from dataclasses import replace
from typing import Any

from strata.cluster import events as e
from strata.observatory.alerts.cluster_rules import ClusterDetector, find_stalled, from_event
from strata.observatory.answers.runs import RunInfo
from strata.observatory.answers.workers import Worker
from tests.support.answers import partly


def worker(name: str, rank: int, step_time_s: float, **more: Any) -> Worker:
    base = {"status": "active", "incarnation": "i", "current_task": "t1", "current_step": 5, "member_state": "ready"}
    return partly(Worker, id=name, rank=rank, step_time_s=step_time_s, **{**base, **more})


def test_a_straggler_is_told_after_several_checks() -> None:
    detector = ClusterDetector()
    group = [worker("w0", 0, 1.0), worker("w1", 1, 1.1), worker("w2", 2, 2.5)]
    found = [finding for _ in range(10) for finding in detector.check(group)]
    assert [(finding.kind, finding.rank) for finding in found] == [("straggler", 2)]
    assert "2.3 times" in found[0].message


def test_a_slow_section_or_a_small_group_is_no_straggler() -> None:
    detector = ClusterDetector()
    in_eval = [worker("w0", 0, 1.0), worker("w1", 1, 1.0), worker("w2", 2, 9.0, section="eval")]
    assert [finding for _ in range(10) for finding in detector.check(in_eval)] == []
    assert [finding for _ in range(10) for finding in detector.check(in_eval[:2])] == []


def test_late_heartbeats() -> None:
    found = ClusterDetector().check([worker("w0", 0, 1.0, member_state="suspect")])
    assert [finding.kind for finding in found] == ["late_heartbeat"]


def test_events_that_people_want_to_know() -> None:
    lost = e.MembersLost(task_id="t1", generation=2, worker_ids=("w1",), reasons=("SIGKILL",), left=False, at=1.0)
    assert [finding.message for finding in from_event(lost)] == ["worker w1 is lost: SIGKILL"]
    assert from_event(replace(lost, left=True)) == []
    failed = e.TaskChanged(task_id="t1", status="failed", attempt=1, reason="gave up", at=1.0)
    assert from_event(failed)[0].severity == "critical"
    assert from_event(replace(failed, status="running")) == []
    aborted = e.CheckpointAborted(attempt="a", reason="r", missing=(), at=1.0)
    assert from_event(aborted)[0].kind == "checkpoint_failed"


def test_a_run_that_goes_silent_while_it_should_run() -> None:
    run = partly(
        RunInfo,
        run_id="r1",
        start_time_ms=0,
        last_event_time_ms=100_000,
        num_points=1_000,
        num_series=10,
        status="running",
        is_active=True,
    )
    assert find_stalled([run], {}, 130_000) == []
    assert [finding.kind for finding in find_stalled([run], {}, 190_000)] == ["stalled_run"]
    assert find_stalled([replace(run, is_active=False)], {}, 190_000) == [], "nobody was heard of for long: it is over"
    ended = replace(run, status="finished")
    assert find_stalled([ended], {}, 190_000) == []
    assert len(find_stalled([ended], {"r1": "running"}, 190_000)) == 1
    assert find_stalled([run], {"r1": "failed"}, 190_000) == [], "its task knows better"
    (unsure,) = find_stalled([replace(run, latest_step=None)], {}, 190_000)
    assert "step" not in unsure.message


def test_a_rank_that_makes_no_step_is_a_hang() -> None:
    reason = "rank 2 has made no step for over 60 s (step 41)"
    changed = e.TaskChanged(task_id="t1", status="running", attempt=1, reason=reason, at=1.0)
    assert from_event(changed) == [], "a sentence is for people: anybody's last words may read like it"
    changed = replace(changed, stuck_rank=2, stuck_step=41)
    (finding,) = from_event(changed)
    assert (finding.kind, finding.severity, finding.rank, finding.step) == ("hang", "critical", 2, 41)
    (later,) = from_event(replace(changed, reason=reason.replace("60 s", "1 min")))
    assert later.subject == finding.subject
