"""The public service: what workers of any language call. Thin: a message in, a command, a message out."""

import asyncio
from collections.abc import AsyncIterator

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.answer import Context, answered, check_rank, fail
from strata.coordinator.rpc.beats import take_beat
from strata.coordinator.rpc.queues import QueueCalls
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import Verdict, Vote
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.outcomes import outcome_for
from strata.coordinator.state.replies import JoinReply, ShardsReply
from strata.errors import InvalidArgument, Refused, StrataError, UnknownDataset
from strata.protocol import convert
from strata.protocol.generated import coordinator_pb2 as pb
from strata.types.shown import check_path
from strata.types.workers import check_metadata

__all__ = ["WorkersService"]

_DEFAULT_CHECKPOINT_DEADLINE_S = 600.0
_TYPES = frozenset(pb.CheckpointInfo.Type.values())
_VERDICTS = {
    Verdict.UNDECIDED: pb.CheckpointDecision.UNDECIDED,
    Verdict.PREPARED: pb.CheckpointDecision.PREPARED,
    Verdict.COMMITTED: pb.CheckpointDecision.COMMITTED,
    Verdict.ABORTED: pb.CheckpointDecision.ABORTED,
}


class WorkersService(QueueCalls):
    """Implements `coordinator.Coordinator`."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._state = coordinator.state
        self.meter = coordinator.meter
        self.tasks = coordinator.state.tasks

    # --- membership

    @answered
    async def RegisterWorker(self, request: pb.WorkerInfo, context: Context) -> pb.WorkerConfig:
        reply = await self._coordinator.ask(c.RegisterWorker(spec=convert.from_worker_info(request)))
        return self._config(reply)

    @answered
    async def DeregisterWorker(self, request: pb.WorkerInfo, context: Context) -> pb.WorkerConfig:
        caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
        return self._config(await self._coordinator.ask(c.DeregisterWorker(caller=caller)))

    def _config(self, reply: JoinReply) -> pb.WorkerConfig:
        lease_s = self._state.config.worker_lease_s
        return pb.WorkerConfig(
            assigned_id=reply.worker_id,
            rank=reply.rank,
            world_size=reply.world_size,
            heartbeat_interval_ms=int(min(lease_s / 3, 10.0) * 1e3),
            config={"incarnation": reply.incarnation, "generation": str(reply.generation)},
            generation=reply.generation,
            incarnation=reply.incarnation,
            term=self._state.term,
        )

    @answered
    async def Heartbeat(self, request: pb.HeartbeatRequest, context: Context) -> pb.HeartbeatResponse:
        response = self._beat(request)
        await self._coordinator.settled()
        return response

    def _beat(self, request: pb.HeartbeatRequest) -> pb.HeartbeatResponse:
        now = self._coordinator.now()
        worker = take_beat(self._state, request, now)
        stop_at = self._state.tasks.stop_step(worker.task_id)
        return pb.HeartbeatResponse(
            acknowledged=True,
            server_timestamp_ms=int(now.wall * 1e3),
            pending_commands=() if stop_at is None else (f"stop_at {stop_at}",),
            generation=self._state.membership.groups[worker.task_id].generation,
            term=self._state.term,
        )

    async def StreamHeartbeats(self, request_iterator: AsyncIterator[pb.HeartbeatRequest], context: Context) -> None:
        """One stream may carry the beats of many workers. When it breaks, they are suspects, not yet dead."""
        seen: dict[str, str] = {}

        def on_beat(request: pb.HeartbeatRequest) -> None:
            self.meter.count("StreamHeartbeats")
            check_rank(context, request, self.tasks)
            response = self._beat(request)
            seen[request.worker_id] = request.incarnation
            self._coordinator.when_settled(lambda error: None if error else context.send(response))

        try:
            await context.listen(on_beat)
            await self._coordinator.settled()  # the last answers go out before the trailers
        except StrataError as error:
            await fail(context, error)
        except asyncio.CancelledError:
            for worker_id in seen:
                worker = self._state.membership.workers.get(worker_id)
                if worker is not None:
                    self._state.membership.suspect(worker_id, seen[worker_id] or worker.incarnation)
            raise

    # --- data

    @answered
    async def RegisterDataset(self, request: pb.DatasetInfo, context: Context) -> pb.DatasetAck:
        shards = await self._coordinator.ask(c.RegisterDataset(spec=convert.from_dataset_info(request)))
        return pb.DatasetAck(
            success=True,
            dataset_id=request.dataset_id,
            total_shards=shards,
            message=f"{shards} shards",
            seq=self._coordinator.seq,
        )

    @answered
    async def GetDataShard(self, request: pb.ShardRequest, context: Context) -> pb.ShardAssignment:
        reply = await self._shards(request, first=True)
        if not reply.assignments:
            raise Refused(
                f"worker {request.worker_id} has no shard of dataset {request.dataset_id!r}: "
                "there are more workers than shards, or none is lent to it now",
                hint="Register the dataset with a smaller shard_size, or use fewer workers.",
            )
        return convert.to_shard_assignment(reply.assignments[0])

    @answered
    async def GetShardAssignments(self, request: pb.ShardRequest, context: Context) -> pb.ShardAssignments:
        reply = await self._shards(request, first=False)
        return pb.ShardAssignments(
            assignments=[convert.to_shard_assignment(shard) for shard in reply.assignments],
            generation=reply.generation,
            digest=reply.digest,
        )

    @answered
    async def AnnounceReading(self, request: pb.ReadingInfo, context: Context) -> pb.ReadingAck:
        command = c.AnnounceReading(
            caller=_caller(request.worker_id, request.incarnation, 0),
            dataset_id=request.dataset_id,
            manifest=request.manifest,
            num_lanes=request.num_lanes,
            shuffle=request.shuffle,
            lanes=tuple(request.lanes),
            sizes=request.sizes,
        )
        return pb.ReadingAck(known=await self._coordinator.ask(command))

    async def _shards(self, request: pb.ShardRequest, *, first: bool) -> ShardsReply:
        if not request.dataset_id:
            raise UnknownDataset("no dataset_id was given")
        caller = _caller(request.worker_id, request.incarnation, request.generation)
        command = c.GetShards(caller=caller, dataset_id=request.dataset_id, epoch=request.epoch, first=first)
        return await self._coordinator.ask(command)

    # --- barriers

    @answered
    async def WaitBarrier(self, request: pb.BarrierRequest, context: Context) -> pb.BarrierResponse:
        arrival = convert.from_barrier_request(request)
        outcome = await self._coordinator.wait_barrier(arrival)
        return convert.to_barrier_response(outcome_for(outcome, arrival.worker_id))

    # --- checkpoints

    @answered
    async def NotifyCheckpoint(self, request: pb.CheckpointInfo, context: Context) -> pb.CheckpointAck:
        if request.type not in _TYPES:
            raise InvalidArgument(f"checkpoint type {request.type} is unknown")
        command = c.NotifyCheckpoint(
            caller=_caller(request.worker_id, request.incarnation, request.generation),
            checkpoint_id=request.checkpoint_id,
            step=request.step,
            epoch=request.epoch,
            storage_path=check_path("storage_path", request.storage_path),
            size_bytes=request.size_bytes,
            type=request.type,
            duration_s=request.duration_s or None,
            metadata=check_metadata(dict(request.metadata)),
        )
        step = await self._coordinator.ask(command)
        return pb.CheckpointAck(
            success=True, checkpoint_id=request.checkpoint_id, message="registered", global_step=step
        )

    @answered
    async def BeginCheckpoint(self, request: pb.CheckpointBegin, context: Context) -> pb.CheckpointAttempt:
        command = c.BeginCheckpoint(
            caller=_caller(request.worker_id, request.incarnation, request.generation),
            step=request.step,
            epoch=request.epoch,
            storage_path=check_path("storage_path", request.storage_path),
            deadline_s=request.deadline_s or _DEFAULT_CHECKPOINT_DEADLINE_S,
        )
        attempt = await self._coordinator.ask(command)
        return pb.CheckpointAttempt(
            attempt=attempt.attempt,
            step=attempt.step,
            generation=attempt.generation,
            deadline_s=attempt.deadline_s,
            ranks=attempt.ranks,
            checkpoint_id=attempt.checkpoint_id,
            epoch=attempt.epoch,
            committer=attempt.committer,
        )

    @answered
    async def AbortCheckpoint(self, request: pb.CheckpointAbort, context: Context) -> pb.CheckpointAck:
        command = c.AbortCheckpoint(
            caller=_caller(request.worker_id, request.incarnation, request.generation),
            attempt=request.attempt,
            reason=request.reason or "no reason given",
        )
        attempt = await self._coordinator.ask(command)
        return pb.CheckpointAck(
            success=attempt.verdict is Verdict.ABORTED,
            checkpoint_id=attempt.checkpoint_id,
            message=attempt.reason or f"the attempt is {attempt.verdict}",
            global_step=attempt.step,
        )

    @answered
    async def VoteCheckpoint(self, request: pb.CheckpointVote, context: Context) -> pb.CheckpointAck:
        if request.size_bytes < 0 or request.duration_s < 0:
            raise InvalidArgument(f"size_bytes {request.size_bytes} and duration_s {request.duration_s} must be ≥ 0")
        vote = Vote(
            manifest_key=request.manifest_key,
            manifest_hash=request.manifest_hash,
            size_bytes=request.size_bytes,
            duration_s=request.duration_s,
        )
        command = c.VoteCheckpoint(
            caller=_caller(request.worker_id, request.incarnation, request.generation),
            attempt=request.attempt,
            rank=request.rank,
            vote=vote,
        )
        attempt = await self._coordinator.ask(command)
        waiting = f"waiting for ranks {list(attempt.unvoted())}" if attempt.unvoted() else "every vote is in"
        return pb.CheckpointAck(
            success=True, checkpoint_id=attempt.checkpoint_id, message=waiting, global_step=attempt.step
        )

    @answered
    async def AwaitCheckpoint(self, request: pb.CheckpointAttempt, context: Context) -> pb.CheckpointDecision:
        worker = self._state.membership.look_up(request.worker_id, self._coordinator.now())
        attempt = await self._coordinator.wait_attempt(request.attempt, worker)
        return pb.CheckpointDecision(
            verdict=_VERDICTS[attempt.verdict],
            attempt=attempt.attempt,
            reason=attempt.reason,
            missing=attempt.missing,
            committer=attempt.committer,
            votes=[_vote(attempt.attempt, rank, attempt.votes[rank]) for rank in sorted(attempt.votes)],
        )

    @answered
    async def CommitCheckpoint(self, request: pb.CheckpointInfo, context: Context) -> pb.CheckpointAck:
        command = c.CommitCheckpoint(
            caller=_caller(request.worker_id, request.incarnation, request.generation),
            attempt=request.attempt,
            metadata=check_metadata(dict(request.metadata)),
        )
        attempt = await self._coordinator.ask(command)
        return pb.CheckpointAck(
            success=True, checkpoint_id=attempt.checkpoint_id, message="committed", global_step=attempt.step
        )

    @answered
    async def GetLatestCheckpoint(self, request: pb.RecoveryRequest, context: Context) -> pb.RecoveryResponse:
        caller = _caller(request.worker_id, request.incarnation, request.generation)
        reply = await self._coordinator.ask(c.Recover(caller=caller, job_id=request.job_id))
        response = pb.RecoveryResponse(
            has_checkpoint=reply.checkpoint is not None,
            shard_assignments=[convert.to_shard_assignment(shard) for shard in reply.assignments],
            generation=reply.generation,
        )
        if reply.checkpoint is not None:
            response.latest_checkpoint.CopyFrom(convert.to_checkpoint_info(reply.checkpoint))
            response.resume_step = reply.checkpoint.step
            response.resume_epoch = reply.checkpoint.epoch
        return response


def _vote(attempt: str, rank: int, vote: Vote) -> pb.CheckpointVote:
    return pb.CheckpointVote(
        attempt=attempt,
        rank=rank,
        manifest_key=vote.manifest_key,
        manifest_hash=vote.manifest_hash,
        size_bytes=vote.size_bytes,
        duration_s=vote.duration_s,
    )


def _caller(worker_id: str, incarnation: str, generation: int) -> Caller:
    if generation < 0:
        raise InvalidArgument(f"generation is {generation}, it must be 0 or more")
    return Caller(worker_id=worker_id, incarnation=incarnation, generation=generation)
