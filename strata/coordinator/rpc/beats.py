"""Heartbeats, whichever way they come: the lease starts anew, and each field is written by the one who owns it.

A worker says itself what it does. What it uses is measured by its agent, with GPUs and children, as long as it has
one; two who write would alternate on the page. Nothing of it is journaled.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from strata.cluster.members import Worker
from strata.coordinator.scheduling.progress import KNOWN_STATES, read_status
from strata.coordinator.state.cluster import ClusterState
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.now import Now
from strata.errors import InvalidArgument, PermissionDenied
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["take_beat", "take_beats", "take_measurement"]

_read_alike = lru_cache(maxsize=256)(read_status)  # one message for all who say the same, not to be changed


def take_beat(state: ClusterState, request: pb.HeartbeatRequest, now: Now, worker: Worker | None = None) -> Worker:
    """Of the worker itself, or of one that is known to be let in. It is not fenced by generation: it is how a plain
    worker hears of a new one."""
    status = request.status
    if status.state not in KNOWN_STATES:
        raise InvalidArgument(f"worker state {status.state} is unknown", hint="Allowed: 0 (UNKNOWN) to 7 (ERROR).")
    if worker is None:
        worker = _authorized(state, request, now)
    pulses, agent = state.membership.pulses, state.agents.agents.get(worker.agent_id)
    pulses.beat(worker.worker_id, status, now)
    if agent is None or not agent.state.alive:
        pulses.of(worker.worker_id).usage = request.resources if request.HasField("resources") else None
    pulses.note_words((worker.worker_id,), asked=status.asked_to_stop, leaving=status.left)
    return worker


def take_beats(state: ClusterState, worker_ids: Sequence[str], alike: bytes, own: Iterable[bytes], now: Now) -> bool:
    """Of workers that are known to be let in, with what they say as bytes: the same of all, and behind it the rest of
    each, which is read when somebody asks for it. False if what they say alike cannot be taken."""
    status = _read_alike(alike)
    if status is None:
        return False
    pulses = state.membership.pulses
    pulses.beat_together({name: alike + rest for name, rest in zip(worker_ids, own, strict=True)}, now)
    pulses.note_words(worker_ids, asked=status.asked_to_stop, leaving=status.left)
    return True


def take_measurement(state: ClusterState, agent_id: str, request: pb.HeartbeatRequest, now: Now) -> None:
    """Takes what the worker's agent has measured."""
    worker = _authorized(state, request, now)
    if worker.agent_id != agent_id:
        raise PermissionDenied(f"worker {worker.worker_id} is not of agent {agent_id}")
    pulses = state.membership.pulses
    pulse = pulses.of(worker.worker_id)
    pulse.usage = request.resources if request.HasField("resources") else None
    pulses.beat(worker.worker_id, pb.WorkerStatus() if pulse.report is None else pulse.report, now)


def _authorized(state: ClusterState, request: pb.HeartbeatRequest, now: Now) -> Worker:
    caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
    return state.membership.authorize(caller, now)
