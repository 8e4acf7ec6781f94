"""Progress apart from liveness: who beats but makes no step. Looks at heartbeats only; decides nothing about tasks."""

from dataclasses import dataclass
from typing import NamedTuple

from google.protobuf.message import DecodeError

from strata.cluster.members import Worker
from strata.coordinator.state.pulses import Pulses
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["KNOWN_STATES", "Pause", "ProgressWatch", "read_status", "status_of", "takes_part"]

KNOWN_STATES = frozenset(pb.WorkerStatus.State.values())
_EXCUSED = frozenset({pb.WorkerStatus.CHECKPOINTING, pb.WorkerStatus.RECOVERING})


class Pause(NamedTuple):
    """How long a rank has made no step. `excused`: it is in a named section, at a save or at recovery, which may take
    as long as they like. `waiting`: it is at a barrier. `counted`: it trains and has told steps. `stopped`: by a
    signal. `limit_s`: the section's own limit. `step_time_s`: the longest step that it told. `longest_s`: its longest
    pause that ended by itself."""

    rank: int
    step: int
    silent_s: float = 0.0
    excused: bool = False
    waiting: bool = False
    counted: bool = False
    stopped: bool = False
    limit_s: float = 0.0
    step_time_s: float = 0.0
    longest_s: float = 0.0


@dataclass(slots=True)
class _Seen:
    where: tuple[str, int, str, int]  # incarnation, step, section, world
    since: float
    step_time_s: float = 0.0
    longest_s: float = 0.0


class ProgressWatch:
    """Remembers when each worker last made a step, and how long its steps took, in earlier attempts too."""

    def __init__(self, pulses: Pulses) -> None:
        self._pulses = pulses
        self._seen: dict[str, _Seen] = {}

    def pause_of(self, worker: Worker, world: int, now: float) -> Pause | None:
        """None for a worker that has said nothing itself. It begins anew in a `world` where a rank was replaced."""
        status = status_of(worker, self._pulses)
        if status is None:
            return None
        where = (worker.incarnation, status.current_step, status.section, world)
        seen = self._seen.setdefault(worker.worker_id, _Seen(where, now))
        seen.step_time_s = max(seen.step_time_s, status.step_time_s)
        training = status.state == pb.WorkerStatus.TRAINING and not status.section
        limited = bool(status.section) and status.section_timeout_s > 0
        if seen.where != where or not (training or limited):
            if training and (seen.where[0], *seen.where[2:]) == (where[0], *where[2:]):  # a step and no more
                seen.longest_s = max(seen.longest_s, now - seen.since)
            seen.where, seen.since = where, now
        waiting = status.at_barrier
        return Pause(
            rank=worker.rank,
            step=status.current_step,
            silent_s=now - seen.since,
            excused=not (waiting or limited) and (bool(status.section) or status.state in _EXCUSED),
            waiting=waiting,
            counted=training,
            limit_s=status.section_timeout_s if limited else 0.0,
            step_time_s=seen.step_time_s,
            longest_s=seen.longest_s,
        )

    def forget(self, worker_ids: list[str]) -> None:
        for worker_id in worker_ids:
            self._seen.pop(worker_id, None)


def takes_part(workers: list[Worker], pulses: Pulses) -> dict[int, bool]:
    """By rank, whether it goes on in place when another is replaced; without those that have not said."""
    said = {worker.rank: status.in_place for worker in workers if (status := status_of(worker, pulses)) is not None}
    return {rank: word == pb.WorkerStatus.TAKES_PART for rank, word in said.items() if word != pb.WorkerStatus.UNSAID}


def status_of(worker: Worker, pulses: Pulses) -> pb.WorkerStatus | None:
    """What it said last that it does. A beat that came with those of others is read here: most are replaced before
    anybody asks for them."""
    pulse = pulses.of(worker.worker_id)
    if isinstance(pulse.report, bytes):
        pulse.report = read_status(pulse.report)
    return pulse.report if isinstance(pulse.report, pb.WorkerStatus) else None


def read_status(said: bytes) -> pb.WorkerStatus | None:
    """None for what is no status, or has a state that nobody knows."""
    try:
        status = pb.WorkerStatus.FromString(said)
    except DecodeError:
        return None
    return status if status.state in KNOWN_STATES else None
