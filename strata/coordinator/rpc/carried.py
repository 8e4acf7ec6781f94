"""The ties that one agent carries: frames of its stream become words of ranks, and what ranks must hear becomes frames.
Ranks that arrive at a barrier together are heard together and released together.
"""

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError

from strata.cluster.events import BarrierReleased
from strata.coordinator.rpc.ties import RankTie, Ties
from strata.coordinator.rpc.together import Arriving, Gathering
from strata.errors import InvalidArgument, StrataError
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["CarriedTies"]


class CarriedTies:
    """By the agent's number. `send` takes what goes to the agent."""

    def __init__(
        self, ties: Ties, gathering: Gathering, agent_id: str, send: Callable[[ag.CoordinatorMessage], None]
    ) -> None:
        self._ties = ties
        self._gathering = gathering
        self._agent_id = agent_id
        self._send = send
        self._carried: dict[int, RankTie] = {}
        self._outgoing = ag.CoordinatorMessage()

    def on_frames(self, frames: ag.TieFrames) -> None:
        for frame in frames.frames:
            if frame.HasField("arrivals"):
                self._arrive(frame.arrivals)
            else:
                self._on_frame(frame)

    def close(self) -> None:
        """The agent's stream has ended."""
        self._gathering.settle()
        for tie in self._carried.values():
            tie.close(broken=True)

    # --- one rank

    def _on_frame(self, frame: ag.TieFrame) -> None:
        self._gathering.settle()  # nothing that a rank says overtakes its arrival
        self._ties.coordinator.meter.count("Tie")
        number = frame.tie
        tie = self._carried.get(number)
        if tie is None and frame.payload:
            send, end = partial(self._send_frame, number), partial(self._end_tie, number)
            tie = self._carried[number] = self._ties.carried(self, number, self._agent_id, send, end)
        if tie is None:
            return
        try:
            if frame.payload:
                tie.hear(rk.RankWords.FromString(frame.payload))
        except StrataError as error:
            tie.close()
            self._end_tie(number, error)
        except DecodeError:
            tie.close()
            self._end_tie(number, InvalidArgument("a rank's words cannot be parsed"))
        if frame.ended and self._carried.pop(number, None) is not None:
            tie.close()

    def _send_frame(self, number: int, payload: bytes) -> None:
        self._frames().add(tie=number, payload=payload)

    def _end_tie(self, number: int, error: StrataError) -> None:
        self._carried.pop(number, None)
        self._frames().add(
            tie=number, ended=True, error_code=error.code, error_message=error.message, error_hint=error.hint
        )

    def _frames(self) -> Any:
        """What goes to the ranks of this host in this turn of the loop leaves as one message."""
        if not self._outgoing.ties.frames:
            asyncio.get_running_loop().call_soon(self._flush)
        return self._outgoing.ties.frames

    def _flush(self) -> None:
        self._send(self._outgoing)
        self._outgoing = ag.CoordinatorMessage()

    # --- ranks that arrive together

    def _arrive(self, said: ag.Arrivals) -> None:
        arriving = []
        for rank in said.ranks:
            tie = self._carried.get(rank.tie)
            if tie is None or tie.worker_id != rank.worker_id:
                self._on_frame(_alone(said.alike, rank))
            else:
                arriving.append(Arriving(tie, rank.incarnation, rank.request_id))
        if arriving:
            said.alike.worker_id = arriving[0].tie.worker_id  # one name for all of them, each of which is a worker's
            self._gathering.add(said.alike, arriving)

    def release(
        self, event: BarrierReleased, ties: Sequence[RankTie], worker_ids: Sequence[str], request_ids: Sequence[str]
    ) -> None:
        releases = self._frames().add().releases
        self._ties.releases.write_all(event, worker_ids, releases)
        releases.request_ids.extend(request_ids)
        releases.ties.extend([tie.number for tie in ties])


def _alone(alike: pb.BarrierRequest, rank: ag.Arriving) -> ag.TieFrame:
    """The same as the agent would have passed it on."""
    words = rk.RankWords(arrivals=(alike,))
    (request,) = words.arrivals
    request.worker_id, request.incarnation, request.request_id = rank.worker_id, rank.incarnation, rank.request_id
    return ag.TieFrame(tie=rank.tie, payload=words.SerializeToString())
