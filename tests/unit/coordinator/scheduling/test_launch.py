"""What a rank is told to run: all that differs between ranks, attempts and sizes is known to spares as a rank's own."""

from dataclasses import replace

from strata.agent.spare import OF_RANKS
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.launch import Launch
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus


def _no_look(task: Task, rank: int) -> str:
    return ""


def test_ranks_of_a_task_differ_only_in_what_a_spare_gets_at_its_hand_over() -> None:
    spec = TaskSpec(name="t", worker_count=4, min_workers=1, entrypoint=("python", "t.py"), spares=2, config={"lr": 1})
    course = TaskCourse(placement=("a", "a", "b"), master_addr="a", master_port=1, gang_port=2)
    task = Task(task_id="t-1", spec=spec, submitted_at=1.0, status=TaskStatus.RUNNING, attempt=1, course=course)
    moved = replace(course, placement=("b",), master_addr="b", master_port=3, gang_port=4, lives=(2,))
    later = replace(task, attempt=2, course=moved)
    first, *others = (
        next(Launch(one, {}, None, {"STRATA_RANK_SECRET": secret, "KEY": "value"}).processes_on(host, _no_look)).env
        for one, host, secret in ((task, "a", "x"), (task, "b", "x"), (later, "b", "y"))
    )
    for other in others:
        assert {name for name in {*first, *other} if first.get(name) != other.get(name)} <= OF_RANKS
    assert first["STRATA_SPARES"] == "2"
