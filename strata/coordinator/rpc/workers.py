"""The public service: what workers of any language call. Thin: a message in, a command, a message out."""

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from typing import Protocol

from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.rpc.answer import Context, answered, check_rank, fail
from strata.coordinator.rpc.beats import take_beat
from strata.coordinator.state import commands as c
from strata.coordinator.state.attempts import SaveAttempt, Verdict, Vote
from strata.coordinator.state.forks import held_steps
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.outcomes import outcome_for
from strata.coordinator.state.replies import JoinReply, ShardsReply
from strata.errors import InvalidArgument, Refused, StrataError, UnknownDataset
from strata.protocol import convert
from strata.protocol.convert import from_progress, to_grant
from strata.protocol.fields import from_message, to_message
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import coordinator_pb2_grpc as pb_grpc
from strata.types.shown import check_path
from strata.types.workers import WorkerSpec, check_count, check_metadata

__all__ = ["WorkersService"]

_DEFAULT_CHECKPOINT_DEADLINE_S = 600.0
_VOTES_FOR_ALL = 100  # votes that every rank is told; of a larger gang only who commits is, or all would get N x N
_TYPES = frozenset(pb.CheckpointInfo.Type.values())


class _Signed(Protocol):
    """A request that says who sends it, and which generation it belongs to."""

    worker_id: str
    incarnation: str
    generation: int


class WorkersService(pb_grpc.CoordinatorServicer):
    """Implements `coordinator.Coordinator`."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator
        self._state = coordinator.state
        self.meter = coordinator.meter
        self.tasks = coordinator.state.tasks
        self.check = coordinator.check_leads

    # --- membership

    @answered
    async def RegisterWorker(self, request: pb.WorkerInfo, context: Context) -> pb.WorkerConfig:
        reply = await self._coordinator.ask(c.RegisterWorker(spec=from_message(WorkerSpec, request)))
        if self._state.membership.workers[reply.worker_id].is_started_rank:  # which registers once per connection
            context.when_lost(partial(self._on_lost_connection, reply.worker_id, reply.incarnation))
        return self._config(reply)

    def _on_lost_connection(self, worker_id: str, incarnation: str) -> None:
        self._state.membership.note_cut(worker_id, incarnation, self._coordinator.now())

    @answered
    async def DeregisterWorker(self, request: pb.WorkerInfo, context: Context) -> pb.WorkerConfig:
        caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
        return self._config(await self._coordinator.ask(c.DeregisterWorker(caller=caller)))

    def _config(self, reply: JoinReply) -> pb.WorkerConfig:
        lease_s = self._state.config.worker_lease_s
        return to_message(
            pb.WorkerConfig,
            reply,
            assigned_id=reply.worker_id,
            heartbeat_interval_ms=int(min(lease_s / 3, 10.0) * 1e3),
            config={"incarnation": reply.incarnation, "generation": str(reply.generation)},
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
        return to_message(pb.ShardAssignment, reply.assignments[0])

    @answered
    async def GetShardAssignments(self, request: pb.ShardRequest, context: Context) -> pb.ShardAssignments:
        reply = await self._shards(request, first=False)
        return pb.ShardAssignments(
            assignments=[to_message(pb.ShardAssignment, shard) for shard in reply.assignments],
            generation=reply.generation,
            digest=reply.digest,
        )

    @answered
    async def AnnounceReading(self, request: pb.ReadingInfo, context: Context) -> pb.ReadingAck:
        caller = Caller(worker_id=request.worker_id, incarnation=request.incarnation)
        command = from_message(c.AnnounceReading, request, caller=caller)
        return pb.ReadingAck(known=await self._coordinator.ask(command))

    async def _shards(self, request: pb.ShardRequest, *, first: bool) -> ShardsReply:
        if not request.dataset_id:
            raise UnknownDataset("no dataset_id was given")
        command = from_message(c.GetShards, request, caller=_caller(request), first=first)
        return await self._coordinator.ask(command)

    # --- queue mode

    @answered
    async def ClaimShard(self, request: pb.QueueClaim, context: Context) -> pb.QueueGrant:
        held = from_progress(request.held)
        command = from_message(c.ClaimShard, request, caller=_caller(request), held=held)
        return to_grant(await self._coordinator.ask(command))

    @answered
    async def CommitShards(self, request: pb.QueueCommit, context: Context) -> pb.QueueGrant:
        progress = from_progress(request.progress)
        command = from_message(c.CommitShards, request, caller=_caller(request), progress=progress)
        return to_grant(await self._coordinator.ask(command))

    @answered
    async def RestoreQueue(self, request: pb.QueueRestore, context: Context) -> pb.QueueGrant:
        command = from_message(c.RestoreQueue, request, caller=_caller(request))
        return to_grant(await self._coordinator.ask(command))

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
        command = from_message(
            c.NotifyCheckpoint,
            request,
            caller=_caller(request),
            storage_path=check_path("storage_path", request.storage_path),
            duration_s=request.duration_s or None,
            metadata=check_metadata(dict(request.metadata)),
        )
        step = await self._coordinator.ask(command)
        return pb.CheckpointAck(
            success=True, checkpoint_id=request.checkpoint_id, message="registered", global_step=step
        )

    @answered
    async def BeginCheckpoint(self, request: pb.CheckpointBegin, context: Context) -> pb.CheckpointAttempt:
        command = from_message(
            c.BeginCheckpoint,
            request,
            caller=_caller(request),
            storage_path=check_path("storage_path", request.storage_path),
            deadline_s=request.deadline_s or _DEFAULT_CHECKPOINT_DEADLINE_S,
        )
        attempt = await self._coordinator.ask(command)
        if not (request.counts_ranks and attempt.counted):
            return to_message(pb.CheckpointAttempt, attempt, worker_id="")
        return to_message(pb.CheckpointAttempt, attempt, worker_id="", ranks=(), num_ranks=len(attempt.ranks))

    @answered
    async def AbortCheckpoint(self, request: pb.CheckpointAbort, context: Context) -> pb.CheckpointAck:
        reason = request.reason or "no reason given"
        command = from_message(c.AbortCheckpoint, request, caller=_caller(request), reason=reason)
        attempt = await self._coordinator.ask(command)
        aborted = attempt.verdict is Verdict.ABORTED
        return _ack(attempt, attempt.reason or f"the attempt is {attempt.verdict}", success=aborted)

    @answered
    async def VoteCheckpoint(self, request: pb.CheckpointVote, context: Context) -> pb.CheckpointAck:
        vote = from_message(Vote, request)
        command = from_message(c.VoteCheckpoint, request, caller=_caller(request), vote=vote)
        attempt = await self._coordinator.ask(command)
        voted = f"{len(attempt.votes)} of {len(attempt.ranks)} ranks have voted"
        return _ack(attempt, "every vote is in" if attempt.complete else voted)

    @answered
    async def AwaitCheckpoint(self, request: pb.CheckpointAttempt, context: Context) -> pb.CheckpointDecision:
        worker = self._state.membership.look_up(request.worker_id, self._coordinator.now())
        attempt = await self._coordinator.wait_attempt(request.attempt, worker)
        commits = worker.rank <= attempt.committer  # it, or one that did before: who only follows needs no votes
        votes = sorted(attempt.votes.items()) if commits or len(attempt.votes) <= _VOTES_FOR_ALL else ()
        return to_message(
            pb.CheckpointDecision,
            attempt,
            verdict=pb.CheckpointDecision.Verdict.Value(attempt.verdict.name),
            votes=[to_message(pb.CheckpointVote, vote, attempt=attempt.attempt, rank=rank) for rank, vote in votes],
        )

    @answered
    async def CommitCheckpoint(self, request: pb.CheckpointInfo, context: Context) -> pb.CheckpointAck:
        metadata = check_metadata(dict(request.metadata))
        command = from_message(c.CommitCheckpoint, request, caller=_caller(request), metadata=metadata)
        attempt = await self._coordinator.ask(command)
        ack = _ack(attempt, "committed")
        ack.held_steps.extend(held_steps(self._state.cluster, attempt.task_id))
        return ack

    @answered
    async def GetLatestCheckpoint(self, request: pb.RecoveryRequest, context: Context) -> pb.RecoveryResponse:
        reply = await self._coordinator.ask(c.Recover(caller=_caller(request), job_id=request.job_id))
        response = pb.RecoveryResponse(
            has_checkpoint=reply.checkpoint is not None,
            shard_assignments=[to_message(pb.ShardAssignment, shard) for shard in reply.assignments],
            generation=reply.generation,
        )
        if reply.checkpoint is not None:
            response.latest_checkpoint.CopyFrom(convert.to_checkpoint_info(reply.checkpoint))
            response.resume_step = reply.checkpoint.step
            response.resume_epoch = reply.checkpoint.epoch
        return response


def _ack(attempt: SaveAttempt, message: str, *, success: bool = True) -> pb.CheckpointAck:
    return pb.CheckpointAck(
        success=success, checkpoint_id=attempt.checkpoint_id, message=message, global_step=attempt.step
    )


def _caller(request: _Signed) -> Caller:
    generation = check_count("generation", request.generation)
    return Caller(worker_id=request.worker_id, incarnation=request.incarnation, generation=generation)
