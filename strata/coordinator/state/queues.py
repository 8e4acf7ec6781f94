"""Queue mode: shards of an epoch lent to whoever is free in a group. Pure; decisions are events, refusals are typed.

Rows count when they are committed, never when they are read. What a dead worker held goes back from its committed row;
a checkpoint that commits takes along what was staged for it; a group that goes back to one undoes what came after.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from strata.cluster import events as e
from strata.cluster.members import Worker
from strata.cluster.model import Cluster
from strata.coordinator.state import commands as c
from strata.coordinator.state.checkpoints import Checkpoints
from strata.coordinator.state.datasets import Datasets
from strata.coordinator.state.membership import Caller, Membership
from strata.coordinator.state.now import Now
from strata.errors import Conflict, Fenced, InvalidArgument, Refused
from strata.sharding.queue import START, ShardQueue
from strata.types.queues import LeaseProgress, QueueGrant, QueueStatus
from strata.types.workers import check_count

__all__ = ["Queues"]

_Key = tuple[str, str]  # group, dataset


class Queues:
    """The queues of all groups, by the cluster's records."""

    def __init__(self, cluster: Cluster, membership: Membership, datasets: Datasets, checkpoints: Checkpoints) -> None:
        self._cluster = cluster
        self._membership = membership
        self._datasets = datasets
        self._checkpoints = checkpoints

    @property
    def queues(self) -> Mapping[_Key, ShardQueue]:
        return self._cluster.queues.records

    # --- commands

    def claim(self, command: c.ClaimShard, now: Now, emit: c.Emit) -> QueueGrant:
        worker = self._authorized(command.caller, now)
        check_count("epoch", command.epoch)
        key = (worker.task_id, command.dataset_id)
        spec = self._datasets.spec(command.dataset_id)
        queue = self.queues.get(key)
        if queue is not None and command.epoch < queue.epoch:
            return QueueGrant(status=QueueStatus.FINISHED, epoch=command.epoch, num_samples=spec.total_samples)
        held = self._held(queue, worker, command.held)
        if queue is None or command.epoch > queue.epoch:
            if queue is not None and not queue.finished:
                return queue.grant(worker.worker_id, queue.idle)
            if queue is not None and command.epoch > queue.epoch + 1:
                raise InvalidArgument(f"epoch {command.epoch} cannot follow epoch {queue.epoch}, which was lent last")
            emit(self._opened(worker, command.dataset_id, command.epoch))
            queue = self.queues[key]
        return self._lend(queue, key, worker, held, emit)

    def commit(self, command: c.CommitShards, now: Now, emit: c.Emit) -> QueueGrant:
        worker = self._authorized(command.caller, now)
        emit(*self._plan_commit(command, worker))
        return self._standing(worker, command.dataset_id)

    def restore(self, command: c.RestoreQueue, now: Now, emit: c.Emit) -> QueueGrant:
        worker = self._authorized(command.caller, now)
        emit(*self._plan_restore(command, worker))
        return self._standing(worker, command.dataset_id)

    def _authorized(self, caller: Caller, now: Now) -> Worker:
        worker = self._membership.authorize(caller, now)
        self._membership.pulses.touch(worker.worker_id, now)
        return worker

    # --- deciding

    def _lend(
        self, queue: ShardQueue, key: _Key, worker: Worker, known: Sequence[LeaseProgress], emit: c.Emit
    ) -> QueueGrant:
        named = {item.lease_id for item in known}
        unheard = [lease for lease in queue.held_by(worker.worker_id) if lease.lease_id not in named]
        if unheard:  # the answer that lent it was lost on the way
            return queue.grant(worker.worker_id, QueueStatus.LEASED, unheard[0].lease_id)
        of_queue = {"task_id": key[0], "dataset_id": key[1]}
        place = queue.free_place(self._undecided(worker.task_id))
        if place is not None:
            lease_id = queue.next_id
            emit(e.QueueLeased(**of_queue, worker_id=worker.worker_id, place=place, lease_id=lease_id))
            return queue.grant(worker.worker_id, QueueStatus.LEASED, lease_id)
        if ended := queue.unread(known):
            emit(e.QueueEnded(**of_queue, lease_ids=tuple(ended)))
        return queue.grant(worker.worker_id, queue.idle)

    def _held(
        self, queue: ShardQueue | None, worker: Worker, progress: Sequence[LeaseProgress]
    ) -> Sequence[LeaseProgress]:
        """Returns the leases that are still open; refuses those that this worker does not hold."""
        if queue is not None:
            return queue.check_held(worker.worker_id, progress)
        if progress:
            raise Fenced(f"fenced: worker {worker.worker_id} holds no lease, the queue has lent nothing")
        return ()

    def _opened(self, worker: Worker, dataset_id: str, epoch: int) -> e.QueueOpened:
        fence = self._membership.group_of(worker).fence
        return e.QueueOpened(task_id=worker.task_id, dataset_id=dataset_id, epoch=epoch, fence=fence)

    def _undecided(self, task_id: str) -> set[int]:
        """Steps of checkpoints that may still be committed."""
        attempts = self._checkpoints.attempts.values()
        return {attempt.step for attempt in attempts if attempt.task_id == task_id and attempt.open}

    def _standing(self, worker: Worker, dataset_id: str) -> QueueGrant:
        """The answer to a worker that asked for no new lease."""
        queue = self.queues.get((worker.task_id, dataset_id))
        if queue is None:
            return QueueGrant(status=QueueStatus.WAIT, epoch=0)
        return queue.grant(worker.worker_id, QueueStatus.FINISHED if queue.finished else QueueStatus.WAIT)

    def _plan_commit(self, command: c.CommitShards, worker: Worker) -> Sequence[e.Event]:
        self._datasets.spec(command.dataset_id)
        check_count("epoch", command.epoch)
        queue = self.queues.get((worker.task_id, command.dataset_id))
        progress = self._held(queue, worker, command.progress)
        leases, rows = tuple(item.lease_id for item in progress), tuple(item.row for item in progress)
        if len(set(leases)) != len(leases):
            raise InvalidArgument(f"a lease is named twice: {leases}")
        told: dict[str, Any] = {
            "task_id": worker.task_id,
            "dataset_id": command.dataset_id,
            "worker_id": worker.worker_id,
            "lease_ids": leases,
            "rows": rows,
        }
        if command.step is not None:
            fence = self._membership.group_of(worker).fence
            staged = e.QueueStaged(**told, step=check_count("step", command.step), fence=fence)
            # A checkpoint before the first sample is a place to go back to, as well.
            return [staged] if queue is not None else [self._opened(worker, command.dataset_id, command.epoch), staged]
        return [e.QueueCommitted(**told)] if progress else []

    def _plan_restore(self, command: c.RestoreQueue, worker: Worker) -> list[e.QueueRestored]:
        """Every rank may ask; the first one after a change of membership does it for all."""
        self._datasets.spec(command.dataset_id)
        if command.step < START:
            raise InvalidArgument(f"step is {command.step}, it must be {START} or more")
        queue = self.queues.get((worker.task_id, command.dataset_id))
        fence = self._membership.group_of(worker).fence
        if queue is None:
            if command.step != START:
                raise Refused(f"the queue of dataset {command.dataset_id!r} has no position for step {command.step}")
            return []
        if queue.restored is not None and queue.restored[0] == fence:
            if queue.restored[1] == command.step:
                return []
            raise Conflict(
                f"another rank went back to step {queue.restored[1]}, {worker.label} wants step {command.step}",
                hint="All ranks of a generation must go on from the same checkpoint.",
            )
        queue.check_restore(command.step)
        return [e.QueueRestored(task_id=worker.task_id, dataset_id=command.dataset_id, step=command.step, fence=fence)]
