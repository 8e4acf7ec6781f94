"""Heartbeats, whichever way they come: the lease starts anew, and each field is written by the one who owns it.

A worker says itself what it does. What it uses is measured by its agent, with GPUs and children, as long as it has
one; two who write would alternate on the page. Nothing of it is journaled.
"""

from strata.cluster.members import Worker
from strata.coordinator.state.cluster import ClusterState
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.now import Now
from strata.errors import InvalidArgument, PermissionDenied
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["take_beat", "take_measurement"]

_STATES = frozenset(pb.WorkerStatus.State.values())


def take_beat(state: ClusterState, request: pb.HeartbeatRequest, now: Now, worker: Worker | None = None) -> Worker:
    """Of the worker itself, or of one that is known to be let in. It is not fenced by generation: it is how a plain
    worker hears of a new one."""
    if request.status.state not in _STATES:
        raise InvalidArgument(
            f"worker state {request.status.state} is unknown", hint="Allowed: 0 (UNKNOWN) to 7 (ERROR)."
        )
    if worker is None:
        worker = _authorized(state, request, now)
    pulses, status, agent = state.membership.pulses, request.status, state.agents.agents.get(worker.agent_id)
    if agent is not None and agent.state.alive:
        request.ClearField("resources")
        known = pulses.of(worker.worker_id).report
        if isinstance(known, pb.HeartbeatRequest) and known.HasField("resources"):
            request.resources.CopyFrom(known.resources)
    pulses.beat(worker.worker_id, request, now)
    pulses.speaking.add(worker.worker_id)
    pulses.note_parting(worker.worker_id, asked=status.asked_to_stop, leaving=status.left)
    return worker


def take_measurement(state: ClusterState, agent_id: str, request: pb.HeartbeatRequest, now: Now) -> None:
    """Takes what the worker's agent has measured."""
    worker = _authorized(state, request, now)
    if worker.agent_id != agent_id:
        raise PermissionDenied(f"worker {worker.worker_id} is not of agent {agent_id}")
    request.ClearField("status")
    known = state.membership.pulses.of(worker.worker_id).report
    if isinstance(known, pb.HeartbeatRequest):
        request.status.CopyFrom(known.status)
    state.membership.pulses.beat(worker.worker_id, request, now)


def _authorized(state: ClusterState, request: pb.HeartbeatRequest, now: Now) -> Worker:
    caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
    return state.membership.authorize(caller, now)
