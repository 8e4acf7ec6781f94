"""The Prometheus page reads the same records as everybody."""

from strata.clock import ManualClock
from strata.cluster.events import AgentJoined, AgentLost
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.http.exposition import Exposition
from strata.observatory.ingest.intake import IntakeCounts
from strata.observatory.stream.broadcaster import Broadcaster
from tests.support.answers import partly


def agent(name: str) -> AgentJoined:
    return AgentJoined(
        agent_id=name, incarnation="i", hostname=name, address=name, slots=2, gpu_count=0, memory_bytes=0, version="1",
        at=1.0,
    )  # fmt: skip


def test_agents_by_state() -> None:
    clock = ManualClock()
    stream = Broadcaster(lambda _: b"{}", clock)
    published = PublishedCluster(stream, clock, lambda: partly(Status), SetAside(clock, lambda _: None))
    for event in (agent("g"), agent("h"), AgentLost(agent_id="h", reason="no beat", left=False, at=2.0)):
        published.followed.apply(event)
    published.set_vitals({}, [], {})
    text = Exposition(published, stream, IntakeCounts(), dict).text().decode()
    assert 'strata_agents{state="ready"} 1.0' in text
    assert 'strata_agents{state="lost"} 1.0' in text
