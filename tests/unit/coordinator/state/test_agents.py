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
        cluster.state.membership.pulses.speaking.add(worker_id)
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


def test_a_host_on_which_nothing_runs_any_more_is_known_at_once() -> None:
    cluster = _cluster()
    membership = cluster.state.membership
    cluster.state.agents.suspect("h")
    for name in ("straight", "gone", "measured"):
        membership.suspect(name, cluster.worker(name).incarnation)  # their ties led by the agent
    membership.note_cut("gone", "another process", cluster.now())
    assert "gone" not in membership.pulses.cut
    for name in ("straight", "gone"):
        membership.note_cut(name, cluster.worker(name).incarnation, cluster.now())
    cluster.beat("straight")  # it lives: its connection was idle
    cluster.pass_time(0.4)
    assert cluster.worker("gone").alive
    cluster.pass_time(0.2)
    assert cluster.worker("gone").reason == "its connections have ended, and so have those of agent h"
    assert all(cluster.worker(name).alive for name in ("straight", "measured", "elsewhere"))


def test_who_was_cut_off_has_a_fresh_term_when_we_did_not_listen() -> None:
    """Its hello by another road may lie unread."""
    cluster = _cluster()
    cluster.state.agents.suspect("h")
    cluster.state.membership.suspect("gone", cluster.worker("gone").incarnation)
    cluster.state.membership.note_cut("gone", cluster.worker("gone").incarnation, cluster.now())
    for _ in range(3):
        cluster.pass_time(0.4)
        cluster.state.renew_leases(cluster.now())
    assert cluster.worker("gone").alive
    cluster.pass_time(0.6)
    assert not cluster.worker("gone").alive


def test_connections_that_end_prove_nothing_while_the_agent_is_there() -> None:
    cluster = _cluster()
    cluster.state.membership.suspect("gone", cluster.worker("gone").incarnation)
    cluster.state.membership.note_cut("gone", cluster.worker("gone").incarnation, cluster.now())
    cluster.pass_time(2.0)
    assert cluster.worker("gone").alive, "its agent says how it ended"


def test_a_rank_went_with_its_host_when_both_are_out_of_reach() -> None:
    cluster = _cluster()
    agents = cluster.state.agents
    worker = cluster.worker("gone")
    assert not agents.took("h", worker, worker.incarnation, attached=False)
    assert not agents.took("h", None, "t.1.0", attached=False), "it is still starting there, perhaps"
    assert agents.took("elsewhere", None, "t.1.0", attached=False)
    cluster.lose("gone")
    lost = cluster.worker("gone")
    assert agents.took("h", lost, lost.incarnation, attached=False)
    assert not agents.took("h", lost, lost.incarnation, attached=True), "its agent is there to end it"
    assert not agents.took("h", lost, "t.2.0", attached=False), "of an earlier attempt"
