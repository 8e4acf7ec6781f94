"""Hosts that go away: who may say so, who may take it back, and what outlives an agent or a coordinator."""

import math

import pytest

from strata.coordinator.state import commands as c
from strata.coordinator.state.cluster import ClusterState, StateConfig
from strata.coordinator.state.now import Now
from strata.coordinator.state.placement import Host, Lacking, plan_gang
from strata.errors import Conflict, InvalidArgument, NotFound
from strata.types.workers import AgentSpec

_NOW = Now(monotonic=50.0, wall=1_000.0)


def _state(*names: str) -> ClusterState:
    state = ClusterState(StateConfig())
    for name in names or ("a",):
        _attach(state, name)
    return state


def _attach(state: ClusterState, name: str, incarnation: str = "i1") -> None:
    spec = AgentSpec(agent_id=name, incarnation=incarnation, hostname="node", address="", slots=2)
    state.apply(c.AttachAgent(spec=spec), _NOW)


def _drain(state: ClusterState, reason: str, deadline: float | None = None, *, noticed: bool = False) -> int:
    """How many events it made."""
    command = c.DrainAgent(agent_id="a", reason=reason, deadline=deadline, noticed=noticed)
    return len(state.apply(command, _NOW).events)


def _told(state: ClusterState) -> tuple[str, float | None, bool]:
    agent = state.agents.agents["a"]
    return agent.draining, agent.deadline, agent.noticed


def test_saying_it_again_changes_nothing_and_the_earlier_deadline_holds() -> None:
    state = _state()
    assert _drain(state, "spot", 1_030.0, noticed=True) == 1
    assert _drain(state, "spot", 1_030.0, noticed=True) == 0
    assert _drain(state, "spot", 1_090.0, noticed=True) == 0
    assert _drain(state, "spot", 1_010.0, noticed=True) == 1
    assert _told(state) == ("spot", 1_010.0, True)


def test_a_decision_outlives_the_agent_and_what_an_agent_noticed_does_not() -> None:
    state = _state()
    _drain(state, "spot", noticed=True)
    _attach(state, "a", "i2")
    assert _told(state) == ("", None, False)
    _drain(state, "repair", 2_000.0)
    _attach(state, "a", "i3")
    assert _told(state) == ("repair", 2_000.0, False)


def test_an_agent_takes_back_only_what_it_said_and_nobody_else_does() -> None:
    state = _state()
    assert _drain(state, "", noticed=True) == 0
    _drain(state, "spot", noticed=True)
    with pytest.raises(Conflict, match="has said itself that its host goes away: spot"):
        _drain(state, "")
    assert _drain(state, "", noticed=True) == 1
    _drain(state, "repair")
    assert _drain(state, "spot", 1_020.0, noticed=True) == 1  # only the deadline is news
    assert _told(state) == ("repair", 1_020.0, False)
    assert _drain(state, "", noticed=True) == 0
    assert _drain(state, "") == 1
    assert _told(state) == ("", None, False)


@pytest.mark.parametrize("deadline", [math.nan, math.inf, -1.0, 0.0])
def test_a_deadline_is_a_time(deadline: float) -> None:
    with pytest.raises(InvalidArgument, match="must be a time"):
        _drain(_state(), "spot", deadline)


def test_a_long_or_broken_reason_is_refused() -> None:
    for reason in ("x" * 10_000, "half \ud800"):
        with pytest.raises(InvalidArgument):
            _drain(_state(), reason)


def test_a_host_is_found_by_id_or_by_a_name_that_is_its_own() -> None:
    assert _state("a").agents.find("node").agent_id == "a"
    two = _state("a", "b")
    assert two.agents.find("b").agent_id == "b"
    with pytest.raises(Conflict, match="has 2 agents"):
        two.agents.find("node")
    with pytest.raises(NotFound, match="no host 'elsewhere' is known"):
        two.agents.find("elsewhere")


def test_a_drain_is_in_the_snapshot() -> None:
    state, again = _state(), ClusterState(StateConfig())
    _drain(state, "repair", 2_000.0)
    again.load(state.dump(), _NOW)
    assert _told(again) == ("repair", 2_000.0, False)


def test_nothing_is_placed_on_a_draining_host() -> None:
    hosts = [Host(agent_id="a", address="", slots=4, draining=True), Host(agent_id="b", address="", slots=2)]
    assert plan_gang(2, "local", hosts, before=("a", "a")) == ("b", "b")
    assert isinstance(plan_gang(3, "local", hosts), Lacking)


def test_hosts_that_go_away_are_known_in_the_order_of_the_question_and_after_a_restart() -> None:
    state = _state("a", "b", "c")
    for name in ("c", "a"):
        state.apply(c.DrainAgent(agent_id=name, reason="repair"), _NOW)
    restarted = ClusterState(StateConfig())
    restarted.load(state.dump(), _NOW)
    for known in (state, restarted):
        assert [agent.agent_id for agent in known.agents.draining({"b": 1, "c": 1, "a": 1}.keys())] == ["c", "a"]
        assert known.agents.draining({"b"}) == []
    state.apply(c.DrainAgent(agent_id="c", reason=""), _NOW)
    assert state.agents.draining({"b", "c"}) == []
