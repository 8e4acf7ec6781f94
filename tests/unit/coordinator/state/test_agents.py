"""What becomes of workers whose agent is lost: those that are heard on another road stay, those that are not go too."""

from strata.coordinator.state import commands as c
from strata.types.workers import AgentSpec, MemberState
from tests.support.pure_cluster import PureCluster


def _cluster() -> PureCluster:
    cluster = PureCluster()
    cluster.ask(c.AttachAgent(spec=AgentSpec(agent_id="h", incarnation="i", hostname="h", address="h:1", slots=4)))
    cluster.join("straight", agent_id="h")
    cluster.join("gone", agent_id="h")
    cluster.join("measured", agent_id="h")
    cluster.join("elsewhere")
    for worker_id in ("straight", "gone"):
        cluster.state.membership.pulses.of(worker_id).speaks = True
    return cluster


def test_a_worker_that_is_silent_with_its_agent_is_lost_with_it() -> None:
    cluster = _cluster()
    for _ in range(6):
        cluster.pass_time(0.9)
        cluster.beat("straight")
    assert cluster.state.agents.agents["h"].state is MemberState.LOST
    assert cluster.worker("gone").state is MemberState.LOST
    assert cluster.worker("gone").reason == "its agent h is lost, and it is silent for 5.4 s"
    assert all(cluster.worker(name).alive for name in ("straight", "measured", "elsewhere"))


def test_nobody_is_lost_while_the_agent_may_be_back() -> None:
    cluster = _cluster()
    cluster.state.agents.suspect("h")
    cluster.pass_time(4.9)
    assert all(cluster.worker(name).alive for name in ("straight", "gone", "measured"))
    cluster.ask(c.AttachAgent(spec=AgentSpec(agent_id="h", incarnation="j", hostname="h", address="h:1", slots=4)))
    cluster.pass_time(4.9)
    assert all(cluster.worker(name).alive for name in ("straight", "gone", "measured"))
