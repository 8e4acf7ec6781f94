"""The whole durable state of a cluster as one pure machine: `apply(command, now)` gives a reply and the events that
made it true. No clock, no sockets, no locks; one loop owns it. Replaying the events gives the same state.
"""

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from strata.cluster import events as e
from strata.coordinator.state import commands as c
from strata.coordinator.state.agents import Agents
from strata.coordinator.state.attempts import Attempt
from strata.coordinator.state.barriers import Barriers
from strata.coordinator.state.checkpoints import Checkpoints
from strata.coordinator.state.datasets import Datasets
from strata.coordinator.state.membership import Caller, Membership
from strata.coordinator.state.now import Now
from strata.coordinator.state.queues import Queues
from strata.coordinator.state.readings import Readings
from strata.coordinator.state.replies import JoinReply, RecoverReply, ShardsReply
from strata.coordinator.state.shares import Shares
from strata.coordinator.state.tasks import Tasks, check_runnable
from strata.errors import InvalidArgument, UnknownWorker
from strata.types.tasks import BUILTIN_TYPES
from strata.types.workers import check_count

__all__ = ["Applied", "ClusterState", "StateConfig"]

_DUMP_VERSION = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class StateConfig:
    """The durations that decide who is alive and how long others wait for them."""

    worker_lease_s: float = 30.0
    agent_lease_s: float = 5.0
    barrier_timeout_s: float = 1800.0
    task_types: tuple[str, ...] = BUILTIN_TYPES


@dataclass(slots=True)
class Applied:
    """What a command did: its answer, and what has to be durable before anybody hears it."""

    reply: Any = None
    events: list[e.Event] = field(default_factory=list)


class ClusterState:
    """Membership, datasets, barriers, checkpoints and tasks, and the rules between them."""

    def __init__(self, config: StateConfig) -> None:
        self.config = config
        self.cluster_id = ""
        self.term = 0
        self.started_at = 0.0
        self.membership = Membership(config.worker_lease_s)
        self.agents = Agents(config.agent_lease_s)
        self.datasets = Datasets(self.membership)
        self.barriers = Barriers(self.membership, config.barrier_timeout_s)
        self.checkpoints = Checkpoints(self.membership)
        self.queues = Queues(self.membership, self.datasets, self.checkpoints)
        self.readings = Readings(self.membership, self.datasets)
        self.tasks = Tasks()
        self.shares = Shares(self.membership, self.datasets, self.queues, self.readings, self.tasks)
        self._handlers: dict[type[c.Command], Callable[[Any, Now, Applied], None]] = {
            c.Start: self._start,
            c.RegisterWorker: self._register_worker,
            c.DeregisterWorker: self._deregister_worker,
            c.LoseWorkers: self._lose_workers,
            c.AttachAgent: self._attach_agent,
            c.LoseAgent: self._lose_agent,
            c.RegisterDataset: self._register_dataset,
            c.GetShards: self._get_shards,
            c.Arrive: self._arrive,
            c.NotifyCheckpoint: self._notify_checkpoint,
            c.BeginCheckpoint: self._begin_checkpoint,
            c.VoteCheckpoint: self._vote_checkpoint,
            c.CommitCheckpoint: self._commit_checkpoint,
            c.AbortCheckpoint: self._abort_checkpoint,
            c.Recover: self._recover,
            c.SubmitTask: self._submit_task,
            c.ChangeTask: self._change_task,
            c.StopTask: self._stop_task,
            c.ResumeTask: self._resume_task,
            c.Tick: self._tick,
            **self.queues.handlers(self._emit),
            **self.readings.handlers(self._emit),
        }

    def apply(self, command: c.Command, now: Now) -> Applied:
        """Carries out one command. A refusal is raised before anything has changed."""
        applied = Applied()
        self._handlers[type(command)](command, now, applied)
        return applied

    # --- commands: workers and agents

    def _start(self, command: c.Start, now: Now, applied: Applied) -> None:
        cluster_id = self.cluster_id or command.cluster_id
        self._emit(applied, e.ClusterStarted(cluster_id=cluster_id, term=self.term + 1, started_at=now.wall), now)

    def _register_worker(self, command: c.RegisterWorker, now: Now, applied: Applied) -> None:
        spec = command.spec
        self.tasks.check_member(spec)
        for lost in self.membership.plan_takeover(spec, now):
            self._lose(lost, now, applied)
        joined = self.membership.plan_join(spec, now)
        if joined is not None:
            before = self.membership.groups.get(spec.task_id)
            previous = before.slots.get(joined.rank) if before else None
            self._emit(applied, joined, now)
            self.barriers.on_rank_taken(self.membership.workers[spec.worker_id], previous)
        worker = self.membership.workers[spec.worker_id]
        worker.seen_at = now.monotonic
        applied.reply = JoinReply(
            worker_id=worker.worker_id,
            rank=worker.rank,
            world_size=self.membership.world_size(worker.task_id),
            generation=self.membership.group_of(worker).generation,
            incarnation=worker.incarnation,
        )

    def _deregister_worker(self, command: c.DeregisterWorker, now: Now, applied: Applied) -> None:
        worker = self.membership.authorize(command.caller, now)
        for lost in self.membership.plan_loss({worker.worker_id: command.reason}, now, left=True):
            self._lose(lost, now, applied)
        applied.reply = JoinReply(
            worker_id=worker.worker_id,
            rank=worker.rank,
            world_size=self.membership.world_size(worker.task_id),
            generation=self.membership.group_of(worker).generation,
            incarnation=worker.incarnation,
        )

    def _lose_workers(self, command: c.LoseWorkers, now: Now, applied: Applied) -> None:
        for lost in self.membership.plan_loss(dict(command.gone), now, left=command.left):
            self._lose(lost, now, applied)

    def _lose(self, lost: e.MembersLost, now: Now, applied: Applied) -> None:
        """A loss and all that follows from it, decided together: barriers break, attempts abort, the fence rises."""
        outcomes = self.barriers.plan_loss(lost, now)
        attempts = self.checkpoints.plan_loss(lost, now)
        for event in (lost, *outcomes, *attempts):
            self._emit(applied, event, now)

    def _attach_agent(self, command: c.AttachAgent, now: Now, applied: Applied) -> None:
        self._emit_some(applied, [self.agents.plan_join(command.spec, now)], now)

    def _lose_agent(self, command: c.LoseAgent, now: Now, applied: Applied) -> None:
        lost = self.agents.plan_loss(command.agent_id, command.reason, now, left=command.left)
        self._emit_some(applied, [lost], now)

    # --- commands: data

    def _register_dataset(self, command: c.RegisterDataset, now: Now, applied: Applied) -> None:
        registered = self.datasets.plan_register(command.spec, now)
        self._emit_some(applied, [registered], now)
        self._emit_some(applied, [self.datasets.plan_attach("", command.spec.dataset_id)], now)
        applied.reply = command.spec.num_shards

    def _get_shards(self, command: c.GetShards, now: Now, applied: Applied) -> None:
        worker = self.membership.authorize(command.caller, now)
        check_count("epoch", command.epoch)
        self._deal(worker.task_id, command.dataset_id, applied, now)
        assignments = self.shares.assignments(worker, command.dataset_id, command.epoch, first=command.first)
        applied.reply = ShardsReply(
            assignments=tuple(assignments),
            generation=self.membership.group_of(worker).generation,
            digest=self.datasets.digest(worker.task_id, command.dataset_id),
        )

    def _deal(self, task_id: str, dataset_id: str, applied: Applied, now: Now) -> None:
        """Whoever asks for shards is dealt some, unless its group reads in another way already."""
        if self.shares.mode(task_id, dataset_id) not in ("lanes", "queue"):
            self._emit_some(applied, [self.datasets.plan_attach(task_id, dataset_id)], now)
            self._emit_some(applied, [self.datasets.plan_rebalance(task_id)], now)

    # --- commands: barriers

    def _arrive(self, command: c.Arrive, now: Now, applied: Applied) -> None:
        arrival = command.arrival
        worker = self.membership.authorize(arrival, now)
        worker.seen_at = now.monotonic  # whoever arrives is alive
        reply, new = self.barriers.arrive(arrival, worker, now)
        if reply.outcome is not None and new:
            self._emit(applied, reply.outcome, now)
        applied.reply = reply

    # --- commands: checkpoints

    def _notify_checkpoint(self, command: c.NotifyCheckpoint, now: Now, applied: Applied) -> None:
        worker = self.membership.authorize(command.caller, now)
        self._emit_some(applied, [self.checkpoints.plan_notified(worker, command, now)], now)
        latest = self.checkpoints.latest(worker.task_id)
        applied.reply = latest.step if latest else command.step

    def _begin_checkpoint(self, command: c.BeginCheckpoint, now: Now, applied: Applied) -> None:
        worker = self.membership.authorize(command.caller, now)
        check_count("step", command.step)
        check_count("epoch", command.epoch)
        if not 0 < command.deadline_s < math.inf:
            raise InvalidArgument(f"deadline_s is {command.deadline_s}, it must be finite and more than 0")
        begun = self.checkpoints.plan_begin(
            worker,
            step=command.step,
            epoch=command.epoch,
            storage_path=command.storage_path,
            deadline_s=command.deadline_s,
            now=now,
        )
        if isinstance(begun, Attempt):
            applied.reply = begun
            return
        self._emit(applied, begun, now)
        applied.reply = self.checkpoints.attempts[begun.attempt]

    def _vote_checkpoint(self, command: c.VoteCheckpoint, now: Now, applied: Applied) -> None:
        worker = self.membership.authorize(command.caller, now)
        voted = self.checkpoints.plan_vote(worker, command.attempt, command.rank, command.vote)
        self._emit_some(applied, [voted], now)
        self._emit_some(applied, [self.checkpoints.plan_prepared(command.attempt)], now)
        applied.reply = self.checkpoints.attempts[command.attempt]

    def _commit_checkpoint(self, command: c.CommitCheckpoint, now: Now, applied: Applied) -> None:
        # The generation is not asked for: once every rank has voted, a later loss does not unmake the bytes.
        caller = Caller(worker_id=command.caller.worker_id, incarnation=command.caller.incarnation)
        worker = self.membership.authorize(caller, now)
        committed = self.checkpoints.plan_commit(worker, command.attempt, dict(command.metadata), now)
        self._emit_some(applied, [self.checkpoints.plan_replaced(committed), committed], now)
        applied.reply = self.checkpoints.attempts[command.attempt]

    def _abort_checkpoint(self, command: c.AbortCheckpoint, now: Now, applied: Applied) -> None:
        worker = self.membership.authorize(command.caller, now)
        aborted = self.checkpoints.plan_abort(worker, command.attempt, command.reason, now)
        self._emit_some(applied, [aborted], now)
        applied.reply = self.checkpoints.attempts[command.attempt]

    def _recover(self, command: c.Recover, now: Now, applied: Applied) -> None:
        worker = self.membership.workers.get(command.caller.worker_id)
        if worker is not None:
            worker = self.membership.authorize(command.caller, now)
        elif not command.job_id or command.job_id not in self.membership.groups:
            raise UnknownWorker(f"worker {command.caller.worker_id!r} is not registered")
        job_id = command.job_id if command.job_id in self.membership.groups else worker.task_id if worker else ""
        assignments: list[Any] = []
        if worker is not None:
            task = self.tasks.tasks.get(worker.task_id)
            if task is not None and task.spec.dataset_id:
                self._deal(worker.task_id, task.spec.dataset_id, applied, now)
            self._emit_some(applied, [self.datasets.plan_rebalance(worker.task_id)], now)
            checkpoint = self.checkpoints.latest(job_id)
            epoch = checkpoint.epoch if checkpoint else 0
            for dataset_id in self.shares.datasets_of(worker.task_id):
                assignments.extend(self.shares.assignments(worker, dataset_id, epoch))
        group = self.membership.groups.get(worker.task_id if worker else job_id)
        applied.reply = RecoverReply(
            checkpoint=self.checkpoints.latest(job_id),
            assignments=tuple(assignments),
            generation=group.generation if group else 0,
        )

    # --- commands: tasks

    def _submit_task(self, command: c.SubmitTask, now: Now, applied: Applied) -> None:
        earlier = self.tasks.submitted_as(command.request_id)
        if earlier is not None:
            applied.reply = self.tasks.task(earlier)
            return
        if command.spec.dataset_id:
            self.datasets.spec(command.spec.dataset_id)
        check_runnable(command.spec, self.config.task_types)
        self._emit(applied, self.tasks.plan_submit(command.task_id, command.spec, command.request_id, now), now)
        applied.reply = self.tasks.task(command.task_id)

    def _change_task(self, command: c.ChangeTask, now: Now, applied: Applied) -> None:
        change = (command.status, command.reason, command.attempt)
        changed = self.tasks.plan_change(command.task_id, change, command.course, now)
        self._emit_some(applied, [changed], now)
        applied.reply = self.tasks.task(command.task_id)

    def _stop_task(self, command: c.StopTask, now: Now, applied: Applied) -> None:
        stopped = self.tasks.plan_stop(command.task_id, command.reason, now, hurry=command.hurry)
        self._emit_some(applied, [stopped], now)
        applied.reply = self.tasks.task(command.task_id)

    def _resume_task(self, command: c.ResumeTask, now: Now, applied: Applied) -> None:
        latest = self.checkpoints.latest(command.task_id)
        step = latest.step if latest else -1
        self._emit(applied, self.tasks.plan_resume(command.task_id, command.by, step, now), now)
        applied.reply = step

    # --- time

    def _tick(self, _command: c.Tick, now: Now, applied: Applied) -> None:
        for lost in self.membership.plan_loss(self.membership.expired(now), now):
            self._lose(lost, now, applied)
        self._emit_some(applied, self.agents.plan_expiry(now), now)
        self._emit_some(applied, self.barriers.plan_expiry(now), now)
        self._emit_some(applied, self.checkpoints.plan_expiry(now), now)
        for task_id in self.datasets.readers():
            self._emit_some(applied, [self.datasets.plan_rebalance(task_id)], now)
        self.barriers.forget_old(now)

    def renew_leases(self, now: Now) -> None:
        """Everybody gets a fresh full term: after a restart or a stall of our own, silence proves nothing."""
        self.membership.renew_all(now)
        self.agents.renew_all(now)

    # --- events

    def _emit(self, applied: Applied, event: e.Event, now: Now) -> None:
        self.evolve(event, now)
        applied.events.append(event)

    def _emit_some(self, applied: Applied, events: Iterable[e.Event | None], now: Now) -> None:
        for event in events:
            if event is not None:
                self._emit(applied, event, now)

    def evolve(self, event: e.Event, now: Now) -> None:
        """Makes one event true. The only place where durable state changes, live and on replay."""
        if self.queues.evolve(event) or self.readings.evolve(event):
            return
        match event:
            case e.WorkerJoined():
                self.membership.on_joined(event, now)
            case e.MembersLost():
                self.membership.on_lost(event)
            case e.BarrierReleased() | e.BarrierBroke():
                self.barriers.on_outcome(event, now)
            case e.ShardsRebalanced():
                self.datasets.on_rebalanced(event)
            case e.DatasetRegistered():
                self.datasets.on_registered(event)
            case e.DatasetAttached():
                self.datasets.on_attached(event)
            case e.CheckpointBegun():
                self.checkpoints.on_begun(event, now)
            case e.CheckpointVoted():
                self.checkpoints.on_voted(event)
            case e.CheckpointPrepared():
                self.checkpoints.on_prepared(event, now)
            case e.CheckpointCommitted():
                self.checkpoints.on_committed(event)
            case e.CheckpointAborted():
                self.checkpoints.on_aborted(event)
            case e.CheckpointRemoved():
                self.checkpoints.on_removed(event)
            case e.AgentJoined():
                self.agents.on_joined(event, now)
            case e.AgentLost():
                self.agents.on_lost(event)
            case e.TaskSubmitted():
                self.tasks.on_submitted(event)
                self.membership.declare_group(event.task_id, event.worker_count)
            case e.TaskChanged():
                self.tasks.on_changed(event)
            case e.ClusterStarted():
                self.cluster_id, self.term, self.started_at = event.cluster_id, event.term, event.started_at
            case _:
                raise AssertionError(f"no rule for {event}")

    # --- snapshots

    def dump(self, *, outcomes: int | None = None) -> dict[str, Any]:
        """Everything durable, as JSON; also the form in which followers get their first state. Of the barriers' ends
        it holds the newest `outcomes` (None = all)."""
        return {
            "version": _DUMP_VERSION,
            "cluster_id": self.cluster_id,
            "term": self.term,
            "started_at": self.started_at,
            "membership": self.membership.dump(),
            "agents": self.agents.dump(),
            "datasets": self.datasets.dump(),
            "barriers": self.barriers.dump(outcomes),
            "checkpoints": self.checkpoints.dump(),
            "queues": self.queues.dump(),
            "readings": self.readings.dump(),
            "tasks": self.tasks.dump(),
        }

    def load(self, dumped: dict[str, Any], now: Now) -> None:
        """Fills a fresh state from a dump."""
        if dumped["version"] != _DUMP_VERSION:
            raise InvalidArgument(f"a state of version {dumped['version']} cannot be read by this release")
        self.cluster_id = dumped["cluster_id"]
        self.term = dumped["term"]
        self.started_at = dumped["started_at"]
        self.membership.load(dumped["membership"], now)
        self.agents.load(dumped["agents"], now)
        self.datasets.load(dumped["datasets"])
        self.barriers.load(dumped["barriers"], now)
        self.checkpoints.load(dumped["checkpoints"], now)
        self.queues.load(dumped.get("queues", []))  # older snapshots know no queues
        self.readings.load(dumped.get("readings", {"layouts": [], "readers": []}))  # nor what loaders read
        self.tasks.load(dumped["tasks"])
