"""Who is told what should run on a host: those for whom it has changed, and nobody else."""

from collections.abc import Callable
from dataclasses import replace

from strata.cluster.tasks import Task
from strata.coordinator.scheduling.desired import DesiredStates
from strata.coordinator.scheduling.launch import Launch
from strata.protocol.generated import agents_pb2 as ag
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus


class Fleet:
    """Hosts that write down what they are told."""

    def __init__(self, *names: str) -> None:
        self.states = DesiredStates(lambda task: Launch(task, {}, None, {}), lambda task, rank: "")
        self.told: dict[str, list[list[int]]] = {name: [] for name in names}
        for name in names:
            self.states.attach(name, self.push_of(name))

    def push_of(self, name: str) -> Callable[[ag.DesiredState], None]:
        return lambda desired: self.told[name].append([process.rank for process in desired.processes])

    async def tell(self, *tasks: Task, changed: bool = True) -> dict[str, list[list[int]]]:
        for task in tasks if changed else ():
            self.states.note_task(task.task_id)
        await self.states.tell([task for task in tasks if not task.status.final], {}, 1)
        told, self.told = self.told, {name: [] for name in self.told}
        return {name: words for name, words in told.items() if words}


def _task(*placement: str, status: TaskStatus = TaskStatus.RUNNING) -> Task:
    spec = TaskSpec(name="t", worker_count=max(len(placement), 1), entrypoint=("true",))
    return Task(
        task_id="t", spec=spec, submitted_at=1.0, status=status, attempt=1, course=TaskCourse(placement=placement)
    )


async def test_a_change_is_told_where_the_ranks_are_and_where_they_were() -> None:
    fleet = Fleet("a", "b", "c")
    assert await fleet.tell(_task("a", "a", "b")) == {"a": [[0, 1]], "b": [[2]], "c": [[]]}
    assert await fleet.tell(_task("a", "a", "c")) == {"b": [[]], "c": [[2]]}
    assert await fleet.tell(_task("a", "a", "c")) == {}


async def test_an_agent_that_comes_back_is_told_alone() -> None:
    fleet, task = Fleet("a", "b"), _task("a", "b")
    await fleet.tell(task)
    fleet.states.attach("b", fleet.push_of("b"))
    assert await fleet.tell(task, changed=False) == {"b": [[1]]}


async def test_the_end_of_a_task_is_told_to_agents_that_a_restarted_coordinator_never_told_of_it() -> None:
    """All attach before the task changes for the first time."""
    fleet, task = Fleet("a", "b"), _task("a", "b")
    await fleet.tell(task, changed=False)
    assert await fleet.tell(replace(task, status=TaskStatus.COMPLETED)) == {"a": [[]], "b": [[]]}


async def test_a_large_task_is_told_in_slices_by_the_records_of_its_beginning() -> None:
    names = [f"h{number}" for number in range(100)]
    fleet, task = Fleet(*names), _task(*names)
    assert await fleet.tell(task) == {name: [[rank]] for rank, name in enumerate(names)}
