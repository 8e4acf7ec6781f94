"""Detectors over events, vitals and silence."""

from dataclasses import replace

from strata.cluster import events as e
from strata.observatory.alerts.cluster_rules import find_late, find_stalled, from_event
from strata.observatory.answers.runs import RunInfo
from strata.observatory.answers.workers import Worker
from tests.support.answers import partly


def test_late_heartbeats() -> None:
    known = {"rank": 0, "incarnation": "i", "current_task": "t1", "current_step": 5}
    late, well = (partly(Worker, id=state, member_state=state, **known) for state in ("suspect", "ready"))
    assert [(finding.kind, finding.worker_id) for finding in find_late([late, well])] == [("late_heartbeat", "suspect")]


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


def test_a_rank_that_holds_up_the_others_is_a_straggler() -> None:
    changed = e.TaskChanged(task_id="t1", status="running", attempt=1, reason="rank 2 is slow", slow_rank=2, at=1.0)
    (finding,) = from_event(changed)
    assert (finding.kind, finding.severity, finding.rank) == ("straggler", "warning", 2)
    assert from_event(replace(changed, status="recovering")) == []
    (other,) = from_event(replace(changed, slow_rank=3))
    assert other.subject != finding.subject


def test_a_fleet_that_is_cut_off_is_one_alert() -> None:
    late = [partly(Worker, id=f"w{rank}", rank=rank, member_state="suspect", current_task="t") for rank in range(500)]
    (told,) = find_late(late)
    assert (told.kind, told.task_id, told.worker_id) == ("late_heartbeat", "t", "w0")
    assert "500 workers" in told.message
    names = tuple(f"w{rank}" for rank in range(500))
    gone = e.MembersLost(task_id="t", generation=3, worker_ids=names, reasons=("gone",) * 500, left=False, at=1.0)
    (lost,) = from_event(gone)
    assert (lost.kind, lost.subject) == ("worker_lost", "t/3")
