"""Which hosts see a task's checkpoints, which of them do not share theirs, and what is refused because of that."""

from dataclasses import replace

import pytest

from strata.cluster.tasks import Task
from strata.coordinator.scheduling.homes import Homes, check_homes
from strata.coordinator.state import commands as c
from strata.coordinator.state.placement import Host, Lacking, host_of, plan_gang, plan_queue
from strata.errors import InvalidArgument
from strata.types.forks import TaskFork
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus
from strata.types.workers import AgentSpec
from tests.support.pure_cluster import PureCluster, caller

_SENTENCE = "host-a, host-b keep checkpoints in folders of their own: set STRATA_CHECKPOINT_BUCKET"


class Site(PureCluster):
    """Agents of two slots, by the home that each has."""

    def __init__(self, **homes: str) -> None:
        super().__init__()
        self.homes = Homes(self.state)
        for name, home in homes.items():
            self.attach(name, home)

    def attach(self, name: str, home: str, task_id: str = "") -> None:
        host = {"hostname": f"host-{name}", "address": "127.0.0.1", "slots": 2, "checkpoints": home}
        spec = AgentSpec(agent_id=name, incarnation="i", task_id=task_id, **host)  # type: ignore[arg-type]
        self.ask(c.AttachAgent(spec=spec))

    @property
    def hosts(self) -> list[Host]:
        return [host_of(agent, 0, excluded=False) for agent in self.state.agents.agents.values()]

    def submit_task(self, task_id: str = "t", **spec: object) -> Task:
        given = {"entrypoint": ("x",), "saves_at_home": True, **spec}
        self.ask(c.SubmitTask(task_id=task_id, spec=TaskSpec(name="t", **given), request_id=""))  # type: ignore[arg-type]
        return self.task(task_id)

    def task(self, task_id: str = "t") -> Task:
        return self.state.tasks.task(task_id)

    def run(self, *placement: str, task_id: str = "t") -> Task:
        """As the scheduler starts it."""
        course = TaskCourse(placement=placement, home=self.homes.home_of(placement))
        change = c.ChangeTask(task_id=task_id, status=TaskStatus.RUNNING, reason="", attempt=1, course=course)
        return self.ask(change)

    def save(self, path: str, task_id: str = "t") -> None:
        """By rank 0 of a task that runs."""
        name, incarnation = f"{task_id}-0", f"{task_id}.1.0"
        self.join(name, task_id=task_id, incarnation=incarnation, rank=0)
        told = {"checkpoint_id": f"{task_id}-k", "step": 1, "epoch": 0, "storage_path": path, "size_bytes": 1}
        self.ask(c.NotifyCheckpoint(caller=caller(name, incarnation=incarnation), **told))  # type: ignore[arg-type]

    def resume(self) -> Task:
        self.ask(c.ChangeTask(task_id="t", status=TaskStatus.FAILED, reason="", attempt=1, course=self.task().course))
        self.ask(c.ResumeTask(task_id="t", by="resumed"))
        return self.task()

    def apart(self, task_id: str = "t") -> list[str]:
        return [host.agent_id for host in self.homes.within_reach(self.task(task_id), self.hosts) if host.apart]


def test_hosts_are_named_only_where_two_of_them_see_different_files() -> None:
    site = Site(a="/d#1", b="/d#2", c="/d#1", old="")
    task = site.submit_task()

    def placed(*names: str) -> dict[str, str]:
        return site.homes.apart(replace(task, course=TaskCourse(placement=names)))

    assert placed("a", "b", "a") == {"STRATA_CHECKPOINTS_APART": "host-a, host-b"}
    for placement in (("a", "a"), ("a", "c"), ("a", "old"), ("a", "gone"), ()):
        assert placed(*placement) == {}


@pytest.mark.parametrize("resumed", [False, True])
def test_a_task_that_has_saved_goes_only_where_that_is_seen(resumed: bool) -> None:
    site = Site(a="/d#1", b="/d#2", c="/d#1", old="")
    site.submit_task(saves_at_home=False)
    site.run("a")
    assert site.apart() == []
    site.save("/d/t/step-1")
    if resumed:
        assert (site.resume().status, site.task().course.placement) == (TaskStatus.QUEUED, ())
    assert site.apart() == ["b"]


def test_one_that_saves_where_its_script_says_goes_anywhere() -> None:
    site = Site(a="/d#1", b="/d#2")
    site.submit_task(saves_at_home=False)
    site.run("a")
    site.save("/own/t/step-1")
    assert site.apart() == []


def test_a_fork_goes_where_its_parent_has_saved() -> None:
    site = Site(a="/d#1", b="/d#2")
    site.submit_task()
    site.run("a")
    site.save("/d/t/step-1")
    fork = TaskFork(task_id="t", step=1, checkpoint_id="t-k", path="/d/t")
    site.submit_task("f", saves_at_home=False, fork=fork)
    assert site.apart("f") == ["b"]


def test_a_task_that_waits_for_such_a_host_says_so_and_holds_back_nobody() -> None:
    site = Site(a="/d#1", b="/d#2")
    site.submit_task(worker_count=2)
    site.run("a", "a")
    site.save("/d/t/step-1")
    site.resume()
    site.submit_task("other", worker_count=2, saves_at_home=False)
    there = [host for host in site.hosts if host.agent_id == "b"]
    plans = plan_queue([site.task(), site.task("other")], there, site.homes.within_reach)
    waits = plans["t"]
    assert isinstance(waits, Lacking)
    assert waits.reason.endswith("; its checkpoints are in a folder that b does not share")
    assert plans["other"] == ("b", "b")
    assert site.homes.plan_wait(site.task(), waits.reason).status is TaskStatus.QUEUED, "its host may come back"


def test_one_that_will_save_is_placed_on_hosts_that_share() -> None:
    site = Site(a="/d#1", b="/d#2", c="/d#2", old="")
    task = site.submit_task(worker_count=6)
    assert site.apart() == ["a"]
    plan = plan_gang(6, "local", site.homes.within_reach(task, site.hosts))
    assert isinstance(plan, tuple)
    assert set(plan) == {"b", "c", "old"}
    site.run("a")
    assert site.apart() == ["b", "c"], "a rank that is replaced stays with the others"


def test_a_busy_home_that_is_large_enough_is_waited_for() -> None:
    site = Site(a="/d#1", b="/d#2", c="/d#2")
    task = site.submit_task(worker_count=4)
    busy = [replace(host, held=2) if host.agent_id != "a" else host for host in site.hosts]
    plan = plan_gang(4, "local", site.homes.within_reach(task, busy))
    assert isinstance(plan, Lacking)
    assert plan.ever
    assert site.homes.plan_wait(task, plan.reason).status is TaskStatus.QUEUED


def test_a_queued_task_waits_for_the_host_that_makes_one_home_large_enough() -> None:
    site = Site(a="/d#1")
    task = site.submit_task(worker_count=4)
    site.submit_task("other", worker_count=4, saves_at_home=False)
    assert site.homes.plan_wait(task, "waiting").reason == "waiting"
    site.attach("b", "/d#2")
    waits = site.homes.plan_wait(task, "waiting")
    assert waits.status is TaskStatus.QUEUED
    assert waits.reason.startswith(f"waiting for hosts that share a folder for checkpoints: {_SENTENCE}")
    plans = plan_queue([task, site.task("other")], site.hosts, site.homes.within_reach)
    assert isinstance(plans["t"], Lacking)
    assert isinstance(plans["other"], tuple), "it holds back nobody"
    site.attach("c", "/d#2")
    plan = plan_queue([task], site.hosts, site.homes.within_reach)["t"]
    assert sorted(plan) == ["b", "b", "c", "c"]  # type: ignore[arg-type]  # it is placed


def test_a_host_that_is_away_for_a_moment_refuses_nobody() -> None:
    site = Site(a="/d#1", b="/d#2", c="/d#2")
    agents = site.state.agents.agents.values()
    task = site.submit_task(worker_count=4)
    site.ask(c.LoseAgent(agent_id="c", reason="silent"))
    check_homes(task.spec, agents)
    assert site.homes.plan_wait(task, "waiting").reason == "waiting"
    site.attach("c", "/d#2")
    site.ask(c.DrainAgent(agent_id="c", reason="r", deadline=None))
    with pytest.raises(InvalidArgument, match=_SENTENCE):
        check_homes(task.spec, agents)


@pytest.mark.parametrize("least", [0, 4])
def test_a_task_whose_own_agents_are_all_there_and_share_no_home_has_failed(least: int) -> None:
    site = Site()
    task = site.submit_task(worker_count=6, min_workers=least)
    for name in "abc":
        waits = site.homes.plan_wait(task, "waiting")
        assert waits.status is TaskStatus.QUEUED
        site.attach(name, f"/d#{name}", task.task_id)
    refused = site.homes.plan_wait(task, "waiting")
    assert (refused.status, refused.attempt) == (TaskStatus.FAILED, 0)
    assert "not started: host-a, host-b, host-c keep checkpoints in folders of their own" in refused.reason


def test_what_no_home_is_large_enough_for_is_refused_with_what_to_set() -> None:
    site = Site(a="/d#1", b="/d#2")
    agents = site.state.agents.agents.values()
    task = site.submit_task(worker_count=4)
    for spec in (task.spec, TaskSpec(name="t", worker_count=3)):
        with pytest.raises(InvalidArgument, match=_SENTENCE):
            check_homes(spec, agents)
    for fits in (
        {"worker_count": 2},
        {"worker_count": 4, "min_workers": 2},
        {"worker_count": 5},
        {"saves_at_home": False},
        {"launcher": "slurm"},
    ):
        check_homes(replace(task.spec, **fits), agents)
    site.ask(c.DrainAgent(agent_id="b", reason="r", deadline=None))
    check_homes(task.spec, agents)


def test_of_many_hosts_a_few_are_named() -> None:
    site = Site(**{f"h{number:02}": f"/d#{number}" for number in range(20)})
    with pytest.raises(InvalidArgument, match="host-h06, host-h07 and 12 more keep checkpoints"):
        check_homes(TaskSpec(name="t", worker_count=40), site.state.agents.agents.values())
