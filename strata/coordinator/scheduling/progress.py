"""Progress apart from liveness: who beats but makes no step. Looks at heartbeats only; decides nothing about tasks."""

from dataclasses import dataclass

from strata.cluster.members import Worker
from strata.coordinator.state.pulses import Pulses
from strata.protocol.generated import coordinator_pb2 as pb

__all__ = ["HANG_S", "Hang", "ProgressWatch", "status_of", "takes_part"]

HANG_S = 60.0
_HANG_STEPS = 30.0


@dataclass(slots=True)
class _Seen:
    incarnation: str
    step: int
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hang:
    """A rank that beats and makes no step, and those that stand still `beside` it."""

    rank: int
    step: int
    how_long: str
    beside: tuple[int, ...]

    def __str__(self) -> str:
        others = ", ".join(map(str, self.beside))
        told = f"rank {self.rank} has made no step for over {self.how_long} (step {self.step})"
        return f"{told}, and neither have ranks {others}" if others else told


class ProgressWatch:
    """Remembers when each worker last made a step. A named section is no hang, however long it takes."""

    def __init__(self, pulses: Pulses) -> None:
        self._pulses = pulses
        self._seen: dict[str, _Seen] = {}

    def find_hang(self, workers: list[Worker], hang_s: float, now: float) -> Hang | None:
        """The worker that stands still at the lowest step, the longest of several. Who waits for it without saying so
        stands still too, and is named beside it."""
        still: list[tuple[int, float, int]] = []  # step, seconds below 0, rank
        for worker in workers:
            status = status_of(worker, self._pulses)
            if status is None:
                continue
            silent = self._silent(worker, status, now)
            if silent > max(hang_s, _HANG_STEPS * status.step_time_s):
                still.append((status.current_step, -silent, worker.rank))
        if not still:
            return None
        (step, silent, rank), *others = sorted(still)
        minutes = int(-silent // 60)
        return Hang(
            rank=rank,
            step=step,
            how_long=f"{minutes} min" if minutes else f"{hang_s:g} s",
            beside=tuple(sorted(other for _, _, other in others)),
        )

    def _silent(self, worker: Worker, status: pb.WorkerStatus, now: float) -> float:
        seen = self._seen.get(worker.worker_id)
        moved = seen is None or (seen.incarnation, seen.step) != (worker.incarnation, status.current_step)
        if moved or status.section or status.state != pb.WorkerStatus.TRAINING:
            self._seen[worker.worker_id] = _Seen(worker.incarnation, status.current_step, now)
            return 0.0
        assert seen is not None
        return now - seen.since

    def forget(self, worker_ids: list[str]) -> None:
        for worker_id in worker_ids:
            self._seen.pop(worker_id, None)


def takes_part(workers: list[Worker], pulses: Pulses) -> dict[int, bool]:
    """By rank, whether it goes on in place when another is replaced; without those that have not said."""
    said = {worker.rank: status.in_place for worker in workers if (status := status_of(worker, pulses)) is not None}
    return {rank: word == pb.WorkerStatus.TAKES_PART for rank, word in said.items() if word != pb.WorkerStatus.UNSAID}


def status_of(worker: Worker, pulses: Pulses) -> pb.WorkerStatus | None:
    """What it said last that it does."""
    report = pulses.of(worker.worker_id).report
    return report.status if isinstance(report, pb.HeartbeatRequest) else None
