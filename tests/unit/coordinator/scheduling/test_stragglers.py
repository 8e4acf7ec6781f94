"""Who holds up the others: by own time, for how long, and when its host is left."""

import math
from dataclasses import replace
from typing import Any

import pytest

from strata.cluster.tasks import Task
from strata.coordinator.scheduling.stragglers import StragglerRule, Stragglers
from strata.coordinator.state.commands import ChangeTask
from strata.coordinator.state.placement import Host
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus
from tests.support.pure_cluster import PureCluster


class _Job:
    """A task of four ranks on hosts a, b, c and d, of which d may be slow."""

    def __init__(self, **spec: Any) -> None:
        self.cluster = PureCluster()
        for rank in range(4):
            self.cluster.join(f"t-{rank}", task_id="t", rank=rank, agent_id="abcd"[rank])
        self.judge = Stragglers(self.cluster.state.membership.pulses, StragglerRule(factor=1.5, after_s=60.0))
        self.task = Task(
            task_id="t",
            spec=TaskSpec(name="t", worker_count=4, entrypoint=("x",), **spec),
            submitted_at=0.0,
            status=TaskStatus.RUNNING,
            attempt=1,
            reason="attempt 1",
            course=TaskCourse(placement=tuple("abcd")),
        )
        self.hosts = [Host(agent_id=name, address=name, slots=1) for name in "abcd"]

    def say(self, *own_times: float, step_time_s: float = 1.0) -> ChangeTask | None:
        """One look after all ranks have told how long their own part of a step took."""
        membership = self.cluster.state.membership
        for rank, own_s in enumerate(own_times):
            status = pb.WorkerStatus(
                state=pb.WorkerStatus.TRAINING, step_time_s=step_time_s, own_time_s=own_s, current_step=9
            )
            membership.pulses.beat(f"t-{rank}", status, self.cluster.now())
        now = self.cluster.now().monotonic
        change = self.judge.plan(self.task, self.judge.times(membership.alive_in("t")), lambda: self.hosts, now)
        if change is not None:
            self.task = replace(self.task, reason=change.reason, course=change.course)
        return change

    def say_for(self, seconds: float, *own_times: float, **more: float) -> ChangeTask | None:
        """The last change of so many looks, one every five seconds."""
        last = None
        for _ in range(int(seconds // 5)):
            last = self.say(*own_times, **more) or last
            self.cluster.pass_time(5.0)
        return last


def test_a_rank_is_named_once_when_it_was_slow_for_long_enough() -> None:
    job = _Job()
    assert job.say_for(60, 0.3, 0.3, 0.4, 0.9) is None
    named = job.say(0.3, 0.3, 0.4, 0.9)
    assert named is not None
    assert named.status is TaskStatus.RUNNING
    assert named.reason == (
        "rank 3 on d holds up the others: its own part of a step takes 0.9 s, 2.6 times the median, for 1 min"
    )
    assert job.task.course.slow_rank == 3
    assert job.say_for(300, 0.3, 0.3, 0.4, 0.9) is None


def test_one_that_is_quick_again_is_no_longer_named() -> None:
    job = _Job()
    job.say_for(70, 0.3, 0.3, 0.3, 0.9)
    cleared = job.say(0.3, 0.3, 0.3, 0.35)
    assert cleared is not None
    assert (cleared.reason, cleared.course.slow_rank) == ("attempt 1, and no rank is slow any more", None)
    assert job.say_for(60, 0.3, 0.3, 0.3, 0.9) is None, "it begins anew"


@pytest.mark.parametrize(
    ("own_times", "step_time_s"),
    [
        ((1.0, 1.0, 1.0, 1.0), 1.0),
        ((0.3, 0.3, 0.3, 0.4), 1.0),
        ((0.001, 0.001, 0.001, 0.004), 1.0),  # thrice as long, and nobody notices
        ((0.0, 0.0, 0.3, 0.9), 1.0),  # of two nobody can say which one is slow
        ((0.3, 0.3, math.nan, math.inf), 1.0),
        ((0.3, 0.3, 0.3, -5.0), 1.0),
        ((0.3, 0.3, 0.3, 0.9), math.nan),
    ],
)
def test_nobody_is_named(own_times: tuple[float, ...], step_time_s: float) -> None:
    assert _Job().say_for(300, *own_times, step_time_s=step_time_s) is None


def test_nobody_is_named_while_the_task_leaves_or_hangs() -> None:
    for course in (TaskCourse(leaving="it grows"), TaskCourse(stuck_rank=1)):
        job = _Job()
        job.task = replace(job.task, course=replace(course, placement=tuple("abcd")))
        assert job.say_for(300, 0.3, 0.3, 0.3, 0.9) is None


def test_its_host_is_left_on_request_where_the_others_are_quicker() -> None:
    job = _Job(min_workers=2, exclude_stragglers=True)
    left = job.say_for(70, 0.3, 0.3, 0.3, 0.9)
    assert left is not None
    assert left.reason.endswith("3.0 times the median, for 1 min; that host is left: all ranks save and leave")
    assert (left.course.excluded, bool(left.course.leaving)) == (("d",), True)


def test_its_host_is_kept_where_the_others_are_slower_or_too_few() -> None:
    """Three do the work of four in 4/3 of the time: a rank that is 1.2 times as slow, with a lower limit, may stay."""
    few = _Job(exclude_stragglers=True)
    kept = few.say_for(70, 0.3, 0.3, 0.3, 0.9)
    assert kept is not None
    assert (kept.course.excluded, kept.course.leaving, kept.course.slow_rank) == ((), "", 3)
    assert kept.reason.endswith("; leaving its host would not make it quicker")
    few.hosts.append(Host(agent_id="e", address="e", slots=1))
    left = few.say(0.3, 0.3, 0.3, 0.9)
    assert left is not None, "there is a slot for it now"
    assert left.course.excluded == ("d",)
    half = _Job(min_workers=1, exclude_stragglers=True)
    half.hosts = [replace(host, held=1) if host.agent_id in "bc" else host for host in half.hosts]
    slower = half.say_for(70, 0.3, 0.3, 0.3, 0.9)
    assert slower is not None
    assert slower.course.excluded == ()
