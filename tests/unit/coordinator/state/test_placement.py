"""Where gangs go: all ranks or none, and reasons that name what is lacking and what to do."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.cluster.members import Agent
from strata.cluster.tasks import Task
from strata.coordinator.state.placement import Host, Lacking, check_gpus, num_spare, plan_gang, plan_queue
from strata.errors import InvalidArgument
from strata.types.plain import shared
from strata.types.tasks import TaskSpec
from strata.types.workers import AgentSpec


def _host(name: str, slots: int, held: int = 0, launcher: str = "local") -> Host:
    return Host(agent_id=name, address="127.0.0.1", slots=slots, held=held, launcher=launcher)


def _task(name: str = "t", workers: int = 2, **values: object) -> Task:
    spec = TaskSpec(name=name, worker_count=workers, max_restarts=3, entrypoint=("x",))
    return Task(task_id=name, spec=spec, submitted_at=0.0, **values)  # type: ignore[arg-type]  # test's own fields


def test_a_gang_goes_on_few_hosts_and_neighbours_stay_together() -> None:
    plan = plan_gang(5, "local", [_host("a", 2), _host("b", 4), _host("c", 1)])
    assert plan == ("b", "b", "b", "b", "a")


def test_a_gang_returns_to_its_hosts_where_they_have_room() -> None:
    hosts = [_host("a", 2, held=2), _host("b", 2), _host("c", 2)]
    assert plan_gang(3, "local", hosts, before=("a", "c", "b")) == ("b", "c", "b")


def test_lacking_names_how_many_and_whether_it_could_ever_fit() -> None:
    assert plan_gang(1, "slurm", [_host("a", 4)]) == Lacking(
        reason="waiting for 1 slot: no slurm agent is attached", ever=False
    )
    nobody = plan_gang(2, "local", [])
    assert nobody == Lacking(
        reason="waiting for 2 slots: no local agent is attached: start one with `strata agent`", ever=False
    )
    busy = plan_gang(3, "local", [_host("a", 4, held=2)])
    assert busy == Lacking(reason="waiting for 3 slots: 2 of 4 are free on 1 local agent", ever=True)
    small = plan_gang(9, "local", [_host("a", 4), _host("b", 4)])
    advice = "add hosts (`strata agent`), start Strata with --slots 9, or ask for at most 8 workers"
    assert small == Lacking(reason=f"needs 9 slots, 2 local agents offer 8: {advice}", ever=False)


@given(
    st.integers(1, 12),
    st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), max_size=5),
    st.lists(st.integers(0, 6), max_size=12),
)
def test_a_gang_is_placed_whole_within_the_free_slots_or_not_at_all(
    ranks: int, slots: list[tuple[int, int]], before: list[int]
) -> None:
    hosts = [_host(f"h{number}", offered, held) for number, (offered, held) in enumerate(slots)]
    plan = plan_gang(ranks, "local", hosts, before=[f"h{number}" for number in before])
    free = {host.agent_id: host.free for host in hosts}
    if isinstance(plan, Lacking):
        assert sum(free.values()) < ranks
        return
    assert len(plan) == ranks
    assert all(plan.count(name) <= free[name] for name in set(plan))


def test_the_queue_is_first_come_first_served_without_starving_or_blocking() -> None:
    hosts = [_host("a", 4, held=1)]
    planned = plan_queue([_task("huge", 9), _task("wide", 4), _task("small", 1)], hosts)
    assert isinstance(planned["huge"], Lacking)
    assert planned["wide"] == Lacking(reason="waiting for 4 slots: 3 of 4 are free on 1 local agent", ever=True)
    assert planned["small"] == Lacking(reason="waiting behind task wide", ever=True)
    free = plan_queue([_task("one", 2), _task("two", 1), _task("three", 1)], hosts)
    assert [type(plan) for plan in free.values()] == [tuple, tuple, Lacking]


def _elastic(name: str, least: int, most: int) -> Task:
    spec = TaskSpec(name=name, worker_count=most, min_workers=least, entrypoint=("x",))
    return Task(task_id=name, spec=spec, submitted_at=0.0)


def test_an_elastic_gang_takes_what_is_free_and_keeps_its_hosts() -> None:
    hosts = [_host("a", 1), _host("c", 1), _host("d", 1)]
    assert plan_gang(4, "local", hosts, before=("a", "b", "c", "d"), least=2) == ("a", "d", "c")
    assert plan_gang(4, "local", [*hosts, _host("b", 1)], before=("a", "d", "c"), least=2) == ("a", "d", "c", "b")
    assert plan_gang(8, "local", hosts, least=4) == plan_gang(4, "local", hosts)


def test_an_elastic_task_in_the_queue_starves_nobody_and_passes_nobody() -> None:
    hosts = [_host("a", 4)]
    assert plan_queue([_elastic("e", 1, 8)], hosts) == {"e": ("a",) * 4}
    beside = plan_queue([_elastic("e", 1, 4), _task("r", 2)], hosts)
    assert beside == {"e": ("a", "a"), "r": ("a", "a")}
    behind = plan_queue([_task("r", 4), _elastic("e", 1, 4)], [_host("a", 4, held=1)])
    assert behind["e"] == Lacking(reason="waiting behind task r", ever=True)
    two = plan_queue([_elastic("e", 1, 4), _elastic("f", 2, 4)], hosts)
    assert two == {"e": ("a", "a"), "f": ("a", "a")}
    whole = plan_queue([_elastic("e", 1, 4), _task("r", 4)], hosts)
    assert whole["e"] == ("a",) * 4, "who cannot run beside it waits for its end anyway"
    later = plan_queue([_elastic("e", 1, 4), _task("r", 3)], [_host("a", 4, held=1)])
    assert later["e"] == ("a",), "three of four slots are kept for the one that waits for them"


def _gpu_host(name: str, slots: int, gpus: int, held: int = 0, gpus_held: int = 0) -> Host:
    return replace(_host(name, slots, held), gpus=gpus, gpus_held=gpus_held)


def test_ranks_with_cards_go_where_so_many_are_free() -> None:
    hosts = [_gpu_host("a", 8, 4, held=1, gpus_held=3), _gpu_host("b", 2, 8), _host("c", 16)]
    assert plan_gang(2, "local", hosts, gpus=2) == ("b", "b")
    assert plan_gang(3, "local", hosts, gpus=1) == ("b", "b", "a")
    busy = plan_gang(4, "local", hosts, gpus=1)
    assert busy == Lacking(reason="waiting for 4 slots with 1 GPU each: 3 of 6 are free on 3 local agents", ever=True)
    small = plan_gang(7, "local", hosts, gpus=1)
    advice = "add hosts (`strata agent`), or ask for at most 6 workers"
    assert small == Lacking(reason=f"needs 7 slots with 1 GPU each, 3 local agents offer 6: {advice}", ever=False)


def test_what_no_host_has_is_refused_at_once() -> None:
    def agent(name: str, gpus: int) -> Agent:
        here = AgentSpec(agent_id=name, incarnation="i", hostname=name, address="", slots=4, gpu_count=gpus)
        return Agent(**shared(Agent, here), joined_at=0.0)

    spec = TaskSpec(name="t", gpus_per_worker=5, entrypoint=("x",))
    check_gpus(spec, [])  # hosts may come
    check_gpus(spec, [agent("a", 0), agent("b", 8)])
    with pytest.raises(InvalidArgument, match="cannot have 5 GPUs: no host has any"):
        check_gpus(spec, [agent("a", 0)])
    with pytest.raises(InvalidArgument, match="cannot have 5 GPUs: b has the most, 4"):
        check_gpus(spec, [agent("a", 0), agent("b", 4)])
    check_gpus(replace(spec, gpus_per_worker=0), [agent("a", 0)])


def test_an_elastic_task_leaves_the_cards_that_queued_tasks_need() -> None:
    hosts = [_gpu_host("a", 8, 8)]
    wide = replace(_elastic("e", 1, 8).spec, gpus_per_worker=1)
    pair = replace(_task("p", 2).spec, gpus_per_worker=2)
    assert num_spare(wide, hosts, [], 1) == 8
    assert num_spare(wide, hosts, [replace(_task("p"), spec=pair)], 1) == 4


_ASKED = st.lists(st.tuples(st.integers(1, 5), st.integers(0, 3), st.integers(0, 4)), max_size=8)
_OFFERED = st.lists(st.tuples(st.integers(1, 6), st.integers(0, 6)), min_size=1, max_size=4)


@given(_OFFERED, _ASKED, st.lists(st.integers(0, 7), max_size=20))
def test_hosts_never_give_more_than_they_have(
    offered: list[tuple[int, int]], asked: list[tuple[int, int, int]], ends: list[int]
) -> None:
    """Tasks come in any order and end in any order; elastic ones among them."""
    hosts = {f"h{number}": _gpu_host(f"h{number}", *given) for number, given in enumerate(offered)}
    queued = []
    for number, (workers, gpus, least) in enumerate(asked):
        task = _task(f"t{number}", workers)
        spec = replace(task.spec, gpus_per_worker=gpus, min_workers=min(least, workers))
        queued.append(replace(task, spec=spec))
    running: dict[str, tuple[Task, tuple[str, ...]]] = {}
    for end in [*ends, -1]:
        plans = plan_queue(queued, _used(hosts, running))
        running |= {one.task_id: (one, plan) for one in queued if isinstance(plan := plans[one.task_id], tuple)}
        queued = [one for one in queued if one.task_id not in running]
        for host in _used(hosts, running):
            assert host.held <= host.slots
            assert host.gpus_held <= host.gpus
        running.pop(f"t{end}", None)


def _used(hosts: dict[str, Host], running: dict[str, tuple[Task, tuple[str, ...]]]) -> list[Host]:
    used = dict(hosts)
    for task, plan in running.values():
        for name in plan:
            used[name] = used[name].hold(task.spec.gpus_per_worker, 1)
    return list(used.values())


def _own(task_id: str, slots: int, held: int = 0) -> Host:
    """The host of an agent that was started for one task."""
    return Host(
        agent_id=f"of-{task_id}", address="127.0.0.1", slots=slots, held=held, launcher="slurm", task_id=task_id
    )


def _slurm(task_id: str, workers: int, least: int = 0) -> Task:
    spec = TaskSpec(name=task_id, worker_count=workers, min_workers=least, launcher="slurm", entrypoint=("x",))
    return Task(task_id=task_id, spec=spec, submitted_at=0.0)


def test_agents_that_were_started_for_a_task_take_no_other() -> None:
    planned = plan_queue([_slurm("b", 2), _slurm("a", 2)], [_own("a", 2)])
    assert planned["a"] == ("of-a", "of-a")
    assert isinstance(planned["b"], Lacking)


def test_a_task_that_waits_for_its_own_agents_holds_back_nobody() -> None:
    hosts = [_own("a", 2, held=2), _own("b", 2), _host("shared", 2, launcher="slurm")]
    planned = plan_queue([_slurm("a", 3), _slurm("b", 2), _slurm("c", 2)], hosts)
    assert isinstance(planned["a"], Lacking)
    assert planned["b"] == ("of-b", "of-b")
    assert planned["c"] == ("shared", "shared")


def test_an_elastic_task_has_all_of_its_own_agents() -> None:
    assert plan_queue([_slurm("a", 4, 1), _slurm("b", 2)], [_own("a", 4)])["a"] == ("of-a",) * 4
