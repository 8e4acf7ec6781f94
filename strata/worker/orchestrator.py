"""TrainingOrchestrator: the specification's face of a worker, for scripts that keep their own loop and processes."""

import asyncio
import contextlib

from strata.client.channel import Channel
from strata.client.plain_rank import PlainRank
from strata.client.tie_thread import TieThread
from strata.client.workers import Member, ResumePoint, WorkersClient
from strata.config import load_settings
from strata.errors import Refused, StrataError
from strata.protocol.generated import coordinator_pb2 as pb
from strata.trust.access import find_access
from strata.types.barriers import BarrierResult
from strata.types.datasets import ShardAssignment
from strata.types.workers import WorkerSpec

__all__ = ["TrainingOrchestrator"]

_HEARD_S = 5.0


class TrainingOrchestrator(contextlib.AbstractContextManager["TrainingOrchestrator"]):
    """One worker. After `register_worker` its tie keeps its lease alive; `heartbeat` tells how far it is."""

    def __init__(self, address: str | None = None, *, timeout_s: float = 10.0) -> None:
        settings = load_settings()
        self._access = find_access(settings)
        self._channel = Channel(address or settings.coordinator_addr, access=self._access, patience_s=timeout_s)
        self._workers = WorkersClient(self._channel)
        self._tied: tuple[PlainRank, TieThread] | None = None

    @property
    def member(self) -> Member:
        return self._worker[0].member

    @property
    def _worker(self) -> tuple[PlainRank, TieThread]:
        if self._tied is None:
            raise Refused("no worker is registered yet", hint="Call register_worker first.")
        return self._tied

    def register_worker(
        self, worker_id: str, hostname: str = "", port: int = 0, *, gpu_count: int = 0, memory_bytes: int = 0
    ) -> Member:
        """Joins the group of plain workers; the answer has worker_id, rank, world_size and heartbeat_interval_ms."""
        spec = WorkerSpec(
            worker_id=worker_id, hostname=hostname, port=port, gpu_count=gpu_count, memory_bytes=memory_bytes
        )
        rank = PlainRank(self._workers.register(spec))
        if self._tied is not None:
            self._tied[1].close()
        tie = TieThread(
            rank,
            self._channel.addresses,
            access=self._access,
            beat_s=rank.member.beat_s,
            patience_s=self._channel.patience_s,
        )
        self._tied = (rank, tie)
        return rank.member

    def heartbeat(self, current_step: int = 0, current_epoch: int = 0, current_task: str = "") -> bool:
        """Tells the coordinator now how far this worker is. False when it did not take notice."""
        rank, tie = self._worker
        rank.status.MergeFrom(
            pb.WorkerStatus(
                state=pb.WorkerStatus.TRAINING,
                current_step=current_step,
                current_epoch=current_epoch,
                current_task=current_task,
            )
        )
        return tie.beat(_HEARD_S)

    async def register_worker_async(
        self, worker_id: str, hostname: str = "", port: int = 0, *, gpu_count: int = 0
    ) -> Member:
        return await asyncio.to_thread(self.register_worker, worker_id, hostname, port, gpu_count=gpu_count)

    async def heartbeat_async(self, current_step: int = 0, current_epoch: int = 0) -> bool:
        return await asyncio.to_thread(self.heartbeat, current_step, current_epoch)

    def get_shard(self, dataset_id: str, epoch: int = 0) -> list[ShardAssignment]:
        """This worker's shards of the epoch, in the order to read them."""
        return self._workers.shards(self.member, dataset_id, epoch)

    async def get_shard_async(self, dataset_id: str, epoch: int = 0) -> list[ShardAssignment]:
        return await asyncio.to_thread(self.get_shard, dataset_id, epoch)

    def barrier(
        self, barrier_id: str, step: int = 0, *, expected: int = 0, timeout_s: float | None = None
    ) -> BarrierResult:
        """Waits for all workers of the group, or for `expected` of them."""
        rank, tie = self._worker
        return tie.barrier(rank.member, barrier_id, step, expected=expected, timeout_s=timeout_s)

    async def barrier_async(self, barrier_id: str, step: int = 0, *, timeout_s: float | None = None) -> BarrierResult:
        return await asyncio.to_thread(self.barrier, barrier_id, step, timeout_s=timeout_s)

    def recover(self, job_id: str = "") -> ResumePoint:
        """The newest committed checkpoint and this worker's shards."""
        return self._workers.recover(self.member.worker_id, job_id, self.member.incarnation)

    async def recover_async(self, job_id: str = "") -> ResumePoint:
        return await asyncio.to_thread(self.recover, job_id)

    def close(self) -> None:
        """Leaves the group."""
        if self._tied is not None:
            self._tied[1].close()
            with contextlib.suppress(StrataError):  # the lease ends it
                self._workers.deregister(self.member)
        self._channel.close()

    def __exit__(self, *_: object) -> None:
        self.close()
