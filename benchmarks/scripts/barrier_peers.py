"""Peers at barriers as messages that are made before they are needed: byte for byte what ranks and agents say."""

import time
from collections.abc import Callable, Sequence

from benchmarks.scripts.grpc_wire import Connection
from benchmarks.scripts.load import RUN, agent_name, name
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = [
    "RANKS_PER_AGENT",
    "Ready",
    "arrival",
    "arrivals_of",
    "greetings",
    "places_of_host",
    "send_all",
    "words_of",
]

RANKS_PER_AGENT = 8


def arrival(number: int, step: int, request_id: str = "") -> pb.BarrierRequest:
    return pb.BarrierRequest(worker_id=name(number), barrier_id="b", step=step, request_id=request_id, incarnation=RUN)


def words_of(rank: int, step: int, request_id: str) -> bytes:
    return rk.RankWords(arrivals=[arrival(rank, step, request_id)]).SerializeToString()


def frames_of(agent: int, words: Callable[[int], rk.RankWords]) -> bytes:
    """What an agent passes on when all its ranks have spoken in one turn."""
    first = agent * RANKS_PER_AGENT
    frames = [
        ag.TieFrame(tie=local + 1, payload=words(first + local).SerializeToString()) for local in range(RANKS_PER_AGENT)
    ]
    return ag.AgentMessage(ties=ag.TieFrames(frames=frames)).SerializeToString()


def arrivals_of(agent: int, step: int, request_id: str) -> bytes:
    """Byte for byte what a relay makes of them."""
    first = agent * RANKS_PER_AGENT
    numbers = range(first, first + RANKS_PER_AGENT)
    ties = range(1, RANKS_PER_AGENT + 1)
    company = ag.Company(ties=ties, worker_ids=map(name, numbers), incarnations=[RUN] * RANKS_PER_AGENT)
    alike = pb.BarrierRequest(barrier_id="b", step=step, request_id=request_id)
    arrivals = ag.Arrivals(alike=alike.SerializeToString(), company=company.SerializeToString())
    return ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(arrivals=arrivals)])).SerializeToString()


def greetings(agent: int) -> list[bytes]:
    """The hellos of an agent and of its ranks."""
    hello = ag.AgentHello(agent_id=agent_name(agent), incarnation=RUN, hostname="h", slots=RANKS_PER_AGENT)
    ranks = frames_of(agent, lambda rank: rk.RankWords(hello=rk.RankHello(worker_id=name(rank), incarnation=RUN)))
    return [ag.AgentMessage(hello=hello).SerializeToString(), ranks]


class Ready:
    """Peers as messages that are made before they are needed: what number n says at a step and with which request, its
    beats (one in a second, in turn), and the places that an answer tells."""

    def __init__(
        self,
        connections: Sequence[Connection],
        *,
        say: Callable[[int, int, str], bytes],
        beat: Callable[[int], bytes],
        places: Callable[[bytes], Sequence[int]],
    ) -> None:
        self.connections = connections
        self.places = places
        self._say = say
        self._beats = [beat(number) for number in range(len(connections))]
        self._began, self._beaten = time.monotonic(), 0

    def prepare(self, step: int, meeting: str) -> Callable[[], None]:
        """Ranks that met where that was go on from there, as an SDK's tie counts."""
        messages = [self._say(number, step, f"{meeting}.1") for number in range(len(self.connections))]

        def send() -> None:
            due = int((time.monotonic() - self._began) * len(self.connections))
            for number in range(self._beaten, due):
                at = number % len(self.connections)
                self.connections[at].send(self._beats[at])
            self._beaten = due
            send_all(self.connections, messages)

        return send


def places_of_host(payload: bytes) -> list[int]:
    frames = ag.CoordinatorMessage.FromString(payload).ties.frames
    released = [frame.releases for frame in frames if frame.HasField("releases")]
    return [place for item in released for place in range(item.first_order, item.first_order + len(item.ties))]


def send_all(connections: Sequence[Connection], messages: Sequence[bytes]) -> None:
    for connection, message in zip(connections, messages, strict=True):
        connection.send(message)
