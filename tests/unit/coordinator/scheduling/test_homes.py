"""Which hosts see a task's checkpoints, and which of them do not share theirs."""

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.scheduling.homes import hosts_apart, within_reach
from strata.coordinator.state.placement import Lacking, host_of, plan_gang
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.tasks import TaskCourse, TaskSpec


def _agents(**homes: str) -> dict[str, Agent]:
    return {name: _agent(name, home) for name, home in homes.items()}


def _agent(name: str, home: str) -> Agent:
    return Agent(
        agent_id=name,
        incarnation="i",
        hostname=f"host-{name}",
        address="127.0.0.1",
        slots=2,
        gpu_count=0,
        memory_bytes=0,
        version="",
        joined_at=0.0,
        checkpoints=home,
    )


def _task(*placement: str) -> Task:
    spec = TaskSpec(name="t", worker_count=max(1, len(placement)), entrypoint=("x",))
    return Task(task_id="t", spec=spec, submitted_at=0.0, course=TaskCourse(placement=placement))


def _saved(path: str) -> CheckpointInfo:
    return CheckpointInfo(
        id="c", step=1, epoch=0, path=path, size_bytes=1, created_at=0.0, status=CheckpointStatus.COMPLETED
    )


def test_hosts_are_named_only_where_two_of_them_see_different_files() -> None:
    agents = _agents(a="/d#1", b="/d#2", c="/d#1", old="")
    assert hosts_apart(_task("a", "b", "a"), agents) == {"STRATA_CHECKPOINTS_APART": "host-a, host-b"}
    for placement in (("a", "a"), ("a", "c"), ("a", "old"), ("a", "gone"), ()):
        assert hosts_apart(_task(*placement), agents) == {}


def test_a_task_that_has_saved_goes_only_where_that_is_seen() -> None:
    agents = _agents(a="/d#1", b="/d#2", c="/d#1", old="")
    hosts = [host_of(agent, 0, excluded=False) for agent in agents.values()]
    marked = within_reach(_task("a"), _saved("/d/t/step-1"), agents, hosts)
    assert [host.agent_id for host in marked if host.apart] == ["b"]
    for task, saved in ((_task("a"), None), (_task(), _saved("/d/t/step-1")), (_task("a"), _saved("/own/step-1"))):
        assert within_reach(task, saved, agents, hosts) == hosts
    assert within_reach(None, _saved("/d/t/step-1"), agents, hosts) == hosts


def test_a_task_that_waits_for_such_a_host_says_so() -> None:
    agents = _agents(a="/d#1", b="/d#2")
    there = [host_of(agents["b"], 0, excluded=False)]
    plan = plan_gang(2, "local", within_reach(_task("a", "a"), _saved("/d/t/step-1"), agents, there))
    assert isinstance(plan, Lacking)
    assert plan.reason.endswith("; its checkpoints are in a folder that b does not share")
