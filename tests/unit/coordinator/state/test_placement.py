"""Where gangs go: all ranks or none, and reasons that name what is lacking and what to do."""

from hypothesis import given
from hypothesis import strategies as st

from strata.cluster.tasks import Task
from strata.coordinator.state.placement import Host, Lacking, plan_gang, plan_queue
from strata.types.tasks import TaskSpec


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
