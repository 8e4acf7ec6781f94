"""What people and the observatory call: tasks, the state and its stream."""

import asyncio
import json
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from strata.cluster.snapshot import copy_cluster
from strata.cluster.tasks import Task
from strata.coordinator.engine.archives import Archives
from strata.coordinator.engine.coordinator import Coordinator
from strata.coordinator.journal.base import Record
from strata.coordinator.rpc.answer import Context, answered, fail
from strata.coordinator.rpc.spares import check_spares
from strata.coordinator.rpc.vitals import VitalsFeed
from strata.coordinator.scheduling.homes import check_homes
from strata.coordinator.state import commands as c
from strata.coordinator.state.forks import forked_spec
from strata.coordinator.state.placement import check_gpus
from strata.errors import Busy, StrataError
from strata.protocol import convert
from strata.protocol.fields import to_message
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import control_pb2_grpc as ct_grpc
from strata.types.checkpoints import CheckpointInfo
from strata.types.plain import json_parts, to_plain
from strata.types.shown import check_text
from strata.types.tasks import TaskSpec, TaskStatus

__all__ = ["ControlService"]

_MAX_DAMAGE = 2_000  # characters


class ControlService(ct_grpc.ControlServicer):
    """Implements `strata.control.Control`."""

    def __init__(self, coordinator: Coordinator, vitals: VitalsFeed, archives: Archives) -> None:
        self._coordinator = coordinator
        self._state = coordinator.state
        self._cluster = coordinator.state.cluster
        self._vitals = vitals
        self._archives = archives
        self.meter = coordinator.meter
        self.tasks = coordinator.state.tasks
        self.check = coordinator.check_steady

    # --- state

    @answered
    async def GetTask(self, request: ct.TaskRef, context: Context) -> ct.RecordReply:
        task = self._state.tasks.task(request.task_id)
        return await self._one(_with_saved(task, self._cluster.checkpoints.latest(task.task_id)))

    @answered
    async def ListTasks(self, request: ct.ListRequest, context: Context) -> ct.RecordList:
        saved = self._cluster.checkpoints.latest_by_task()
        return await self._all(_with_saved(task, saved.get(task.task_id)) for task in self._cluster.tasks.values())

    @answered
    async def GetDataset(self, request: ct.DatasetRef, context: Context) -> ct.RecordReply:
        self._state.datasets.spec(request.dataset_id)
        return await self._one(to_plain(self._cluster.datasets[request.dataset_id]))

    @answered
    async def ListDatasets(self, request: ct.ListRequest, context: Context) -> ct.RecordList:
        return await self._all(to_plain(item) for item in self._cluster.datasets.values())

    @answered
    async def ListWorkers(self, request: ct.ListRequest, context: Context) -> ct.RecordList:
        standing = self._state.membership.pulses.standing
        return await self._all(
            {**to_plain(item), "state": standing(item.worker_id, item.state)}
            for item in self._cluster.workers.values()
            if _is_asked(request, item.task_id)
        )

    @answered
    async def ListAgents(self, request: ct.ListRequest, context: Context) -> ct.RecordList:
        standing = self._state.agents.pulses.standing
        agents = self._cluster.agents.values()
        return await self._all({**to_plain(item), "state": standing(item.agent_id, item.state)} for item in agents)

    @answered
    async def ListCheckpoints(self, request: ct.ListRequest, context: Context) -> ct.RecordList:
        found = self._cluster.checkpoints.records.values()
        return await self._all(to_plain(item) for item in found if _is_asked(request, item.task_id or ""))

    async def _one(self, record: Mapping[str, Any]) -> ct.RecordReply:
        reply = ct.RecordReply(record_json=_json(record))
        await self._coordinator.settled()
        return reply

    async def _all(self, records: Iterable[Mapping[str, Any]]) -> ct.RecordList:
        reply = ct.RecordList(records_json=_json(list(records)))
        await self._coordinator.settled()
        return reply

    async def _durable_snapshot(self) -> ct.StateSnapshot:
        """The records as they are now, given out when all of them are durable. More may have been decided by then:
        whoever follows skips what the snapshot holds already."""
        seq, parts = self._coordinator.seq, []
        for part in json_parts(copy_cluster(self._cluster)):
            parts.append(part)
            await asyncio.sleep(0)  # a large cluster takes 200 ms; its records do not change, and others are served
        await self._coordinator.settled()
        return ct.StateSnapshot(seq=seq, records_json="".join(parts).encode())

    async def WatchState(self, request: ct.WatchRequest, context: Context) -> AsyncIterator[ct.StateUpdate]:
        self.meter.count("WatchState")
        try:
            async for update in self._watch(request):
                yield update
        except StrataError as error:
            await fail(context, error)

    async def _watch(self, request: ct.WatchRequest) -> AsyncIterator[ct.StateUpdate]:
        feed = self._coordinator.feed
        self._coordinator.check_leads()
        follower = feed.follow()  # no await between here and since(): nothing can fall between the two
        vitals = self._vitals.join()
        seen = request.from_seq
        try:
            missed = feed.since(seen) if request.cluster_id == self._state.cluster_id else None
            if missed is None:
                snapshot = await self._durable_snapshot()
                seen = snapshot.seq
                yield ct.StateUpdate(snapshot=snapshot)
            elif missed:
                seen = missed[-1].seq
                yield ct.StateUpdate(events=_batch(missed))
            yield ct.StateUpdate(vitals=await self._vitals.full())
            async for update in _merge(follower.next, vitals.next, seen):
                if follower.cut:
                    raise Busy("this follower fell behind", hint="Come back with from_seq.")
                self._coordinator.check_leads()
                yield update
        finally:
            feed.leave(follower)
            self._vitals.leave(vitals)

    @answered
    async def GetShardTable(self, request: ct.ShardTableRequest, context: Context) -> ct.ShardTable:
        shares = self._state.shares
        self._state.datasets.spec(request.dataset_id)
        task_id = request.task_id if request.HasField("task_id") else shares.reading_group(request.dataset_id)
        first, limit = max(request.first_shard, 0), request.num_shards if request.num_shards > 0 else None
        table = shares.table(task_id, request.dataset_id, first, limit)
        return to_message(
            ct.ShardTable,
            table,
            shard=table.shards.tolist(),
            reader=table.readers.tolist(),
            start_index=table.starts.tolist(),
            end_index=table.stops.tolist(),
            committed=table.committed.tolist(),
            digest=self._state.datasets.digest(task_id, request.dataset_id) if table.mode == "dealt" else "",
        )

    # --- tasks

    @answered
    async def SubmitTask(self, request: ct.TaskSpec, context: Context) -> ct.TaskAck:
        spec = convert.from_task_spec(request)
        check_spares(spec, self._state.agents)
        check_gpus(spec, self._state.agents.agents.values())
        check_homes(spec, self._state.agents.agents.values())
        await self._check_code(spec)
        task_id = f"{spec.name[:80]}-{uuid.uuid4().hex[:8]}"
        command = c.SubmitTask(task_id=task_id, spec=spec, request_id=convert.check_request_id(request.request_id))
        return self._ack(await self._coordinator.ask(command))

    @answered
    async def StopTask(self, request: ct.TaskRef, context: Context) -> ct.TaskAck:
        reason = request.reason or "stopped by the user"
        command = c.StopTask(task_id=request.task_id, reason=reason, hurry=request.hurry)
        return self._ack(await self._coordinator.ask(command))

    @answered
    async def ReportCheck(self, request: ct.CheckpointCheck, context: Context) -> ct.CheckAck:
        command = c.NoteCheck(
            checkpoint_id=request.checkpoint_id,
            storage_path=request.storage_path,
            damage=check_text("damage", request.damage, _MAX_DAMAGE),
        )
        return ct.CheckAck(known=await self._coordinator.ask(command))

    @answered
    async def ResumeTask(self, request: ct.TaskRef, context: Context) -> ct.TaskAck:
        await self._check_code(self._state.tasks.task(request.task_id).spec)
        command = c.ResumeTask(task_id=request.task_id, by=request.reason or "resumed by the user")
        step = await self._coordinator.ask(command)
        found = ct.TaskAck(task_id=request.task_id, status=TaskStatus.QUEUED.value, seq=self._coordinator.seq)
        if step >= 0:
            found.from_step = step
        return found

    @answered
    async def ForkTask(self, request: ct.ForkRequest, context: Context) -> ct.TaskAck:
        request_id = convert.check_request_id(request.request_id)
        made = self._state.tasks.submitted_as(request_id)
        spec = self._state.tasks.task(made).spec if made else self._forked(request)
        task_id = f"{spec.name[:80]}-{uuid.uuid4().hex[:8]}"
        task = await self._coordinator.ask(c.SubmitTask(task_id=task_id, spec=spec, request_id=request_id))
        found = self._ack(task)
        if task.spec.fork is not None:
            found.from_step = task.spec.fork.step
        return found

    def _forked(self, request: ct.ForkRequest) -> TaskSpec:
        parent = self._state.tasks.task(request.task_id)
        spec = forked_spec(self._cluster, parent, convert.from_fork_request(request))
        spec = replace(spec, env=dict(self._coordinator.vault.env_of(parent.task_id)))
        check_spares(spec, self._state.agents)
        check_gpus(spec, self._state.agents.agents.values())
        return spec

    @answered
    async def DrainAgent(self, request: ct.DrainRequest, context: Context) -> ct.DrainAck:
        agent_id = self._state.agents.find(request.host).agent_id
        deadline = request.deadline if request.HasField("deadline") else None
        reason = "" if request.undo else request.reason or "drained by the user"
        await self._coordinator.ask(c.DrainAgent(agent_id=agent_id, reason=reason, deadline=deadline))
        return ct.DrainAck(agent_id=agent_id, seq=self._coordinator.seq)

    # --- their code

    @answered
    async def PutCode(self, request: ct.CodePart, context: Context) -> ct.CodeAck:
        part = (request.digest, request.total, request.offset, request.data)
        return ct.CodeAck(complete=await asyncio.to_thread(self._archives.put, *part))

    @answered
    async def GetCode(self, request: ct.CodeRef, context: Context) -> ct.CodePart:
        data, total = await asyncio.to_thread(self._archives.get, request.digest, request.offset)
        return ct.CodePart(digest=request.digest, total=total, offset=request.offset, data=data)

    async def _check_code(self, spec: TaskSpec) -> None:
        """Refuses a task whose code no agent could fetch."""
        if spec.code:
            await asyncio.to_thread(self._archives.check, spec.code)

    def _ack(self, task: Task) -> ct.TaskAck:
        return ct.TaskAck(task_id=task.task_id, status=task.status.value, seq=self._coordinator.seq)


def _with_saved(task: Task, saved: CheckpointInfo | None) -> dict[str, Any]:
    """A task, and the step of its newest complete checkpoint."""
    return {**to_plain(task), "saved_step": saved.step if saved is not None else None}


def _is_asked(request: ct.ListRequest, task_id: str) -> bool:
    return not request.HasField("task_id") or request.task_id == task_id


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _batch(records: list[Record]) -> ct.EventBatch:
    events = [ct.Event(seq=item.seq, at=item.at, kind=item.kind, body_json=item.body) for item in records]
    return ct.EventBatch(events=events)


async def _merge(
    next_records: Callable[[], Awaitable[list[Record]]], next_vitals: Callable[[], Awaitable[ct.Vitals]], seen: int
) -> AsyncIterator[ct.StateUpdate]:
    """Both sources as one, as they come; records up to `seen` are known already."""
    records = asyncio.ensure_future(next_records())
    vitals = asyncio.ensure_future(next_vitals())
    try:
        while True:
            done, _ = await asyncio.wait({records, vitals}, return_when=asyncio.FIRST_COMPLETED)
            if records in done:
                fresh = [record for record in records.result() if record.seq > seen]
                if fresh:
                    yield ct.StateUpdate(events=_batch(fresh))
                records = asyncio.ensure_future(next_records())
            if vitals in done:
                yield ct.StateUpdate(vitals=vitals.result())
                vitals = asyncio.ensure_future(next_vitals())
    finally:
        records.cancel()
        vitals.cancel()
