"""When elastic tasks change their size: after slots stood free, never for a host that comes and goes."""

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from strata.cluster.tasks import Task
from strata.coordinator.scheduling.growth import RETURN_S, Growth
from strata.coordinator.state.endings import plan_restart
from strata.coordinator.state.now import Now
from strata.coordinator.state.placement import Host, Lacking, plan_queue
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus


def _task(size: int, least: int = 1, most: int = 4, grow_after_s: float = 30.0, status: str = "running") -> Task:
    spec = TaskSpec(name="t", worker_count=most, min_workers=least, grow_after_s=grow_after_s, entrypoint=("x",))
    course = TaskCourse(placement=tuple(f"h{number}" for number in range(size)))
    return Task(task_id="t", spec=spec, submitted_at=0.0, status=TaskStatus(status), attempt=1, course=course)


def _queued(name: str, workers: int) -> Task:
    return Task(task_id=name, spec=TaskSpec(name=name, worker_count=workers, entrypoint=("x",)), submitted_at=0.0)


def _hosts(number: int, held: int = 0) -> list[Host]:
    return [Host(agent_id=f"h{each}", address="", slots=1, held=int(each < held)) for each in range(number)]


def test_a_task_grows_when_slots_stood_free() -> None:
    growth, task = Growth(0.0), _task(2)
    assert growth.plan(task, _hosts(4), [], 100.0) is None
    assert growth.plan(task, _hosts(3), [], 129.9) is None
    change = growth.plan(task, _hosts(4), [], 130.0)
    assert change is not None
    assert change.course.leaving == "2 more slots are free, so it grows from 2 to 4 ranks"
    leaving = replace(task, course=change.course)
    assert growth.plan(leaving, _hosts(4), [], 500.0) is None, "it leaves once"


def test_a_host_that_comes_and_goes_makes_nobody_grow() -> None:
    growth, task = Growth(0.0), _task(3)
    for second in range(0, 1_000, 20):
        assert growth.plan(task, _hosts(4), [], second) is None
        assert growth.plan(task, _hosts(3), [], second + 19) is None


def test_queued_tasks_come_first_if_they_can_run_beside_it() -> None:
    growth, task = Growth(0.0), _task(2, grow_after_s=0.0)
    assert growth.plan(task, _hosts(4), [_queued("small", 2)], 1.0) is None
    some = growth.plan(task, _hosts(4), [_queued("one", 1)], 2.0)
    assert some is not None
    assert "from 2 to 3 ranks" in some.reason
    wide = growth.plan(task, _hosts(4), [_queued("wide", 3)], 3.0)
    assert wide is not None, "it has to wait for this task's end however small that stays"
    assert "from 2 to 4 ranks" in wide.reason


def test_one_that_is_whole_rigid_or_not_running_stays_as_it_is() -> None:
    for task in (_task(4), _task(3, least=3, most=3), _task(2, status="recovering"), _task(2, status="stopping")):
        assert Growth(0.0).plan(replace(task), _hosts(8), [], 1e6) is None


def test_a_restart_waits_a_moment_for_an_agent_that_is_away() -> None:
    task, now = _task(4, status="recovering"), Now(monotonic=50.0, wall=1_000.0)
    smaller = plan_restart(task, _hosts(3), 7, now)
    whole = plan_restart(task, _hosts(4), 7, now)
    assert smaller is not None
    assert whole is not None
    assert (smaller.status, smaller.course.placement) == (TaskStatus.RUNNING, ("h0", "h1", "h2"))
    assert smaller.reason == "attempt 2 with 3 of 4 ranks, resumes from step 7"
    growth = Growth(0.0)
    growth.note_broken("h3", 50.0)
    assert growth.waits(task, smaller, ["h3"], 50.0 + RETURN_S / 2)
    assert not growth.waits(task, smaller, ["h3"], 50.0 + RETURN_S)
    assert not growth.waits(task, smaller, [], 50.0)
    assert not growth.waits(task, whole, ["h3"], 50.0)
    assert Growth(50.0).waits(task, smaller, ["h3"], 51.0), "after a restart of the coordinator everybody is away"


@given(
    least=st.integers(1, 4),
    more=st.integers(0, 4),
    weather=st.lists(st.tuples(st.lists(st.integers(0, 3), max_size=4), st.sampled_from(["kill", "wait", "other"]))),
)
def test_a_size_is_always_within_its_bounds_and_the_free_slots(
    least: int, more: int, weather: list[tuple[list[int], str]]
) -> None:
    """Slots come and go, ranks are killed, others are queued; the task is started, restarted and grown as decided."""
    task = replace(_task(0, least, least + more, grow_after_s=10.0), status=TaskStatus.QUEUED, attempt=0)
    growth, now = Growth(0.0), 0.0
    for slots, what in weather:
        now += 6.0
        hosts = [Host(agent_id=f"h{each}", address="", slots=count) for each, count in enumerate(slots)]
        others = [_queued("other", 2)] if what == "other" else []
        free = sum(host.free for host in hosts)
        if task.status is TaskStatus.QUEUED:
            plan = plan_queue([task, *others], hosts)["t"]
            if isinstance(plan, Lacking):
                assert free < least
                continue
            course = replace(task.course, placement=plan)
            task = replace(task, status=TaskStatus.RUNNING, attempt=1, course=course)
        elif (
            what == "kill"
            or task.course.leaving
            or any(task.course.placement.count(h.agent_id) > h.slots for h in hosts)
        ):
            recovering = replace(task, status=TaskStatus.RECOVERING)
            change = plan_restart(recovering, hosts, 5, Now(monotonic=now, wall=now))
            assert change is not None
            if change.status is not TaskStatus.RUNNING:
                assert free < least
                continue
            task = replace(task, attempt=change.attempt, course=change.course)
        elif (grown := growth.plan(task, hosts, others, now)) is not None:
            assert task.size < min(free, task.spec.worker_count)
            task = replace(task, course=grown.course)
            continue
        else:
            continue
        assert least <= task.size <= least + more
        assert all(task.course.placement.count(host.agent_id) <= host.free for host in hosts)
