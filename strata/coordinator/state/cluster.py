"""The whole durable state of a cluster as one pure machine: `apply(command, now)` gives a reply and the events that
made it true. No clock, no sockets, no locks; one loop owns it. Replaying the events gives the same state. What all may
see is in the cluster's records, which every event changes by the one rule of strata/cluster. Here is what is decided
about them, and what only the coordinator knows.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic

from strata.cluster import events as e
from strata.cluster.members import Worker
from strata.cluster.model import Cluster
from strata.cluster.snapshot import copy_cluster, load_cluster
from strata.cluster.tasks import Task
from strata.coordinator.state import commands as c
from strata.coordinator.state.agents import Agents
from strata.coordinator.state.attempts import SaveAttempt
from strata.coordinator.state.barriers import Barriers
from strata.coordinator.state.checkpoints import Checkpoints
from strata.coordinator.state.datasets import Datasets
from strata.coordinator.state.first_snapshots import renewed
from strata.coordinator.state.membership import Caller, Membership
from strata.coordinator.state.now import Now
from strata.coordinator.state.queues import Queues
from strata.coordinator.state.readings import Readings
from strata.coordinator.state.replies import BarrierReply, JoinReply, RecoverReply, ShardsReply
from strata.coordinator.state.shares import Shares
from strata.coordinator.state.tasks import Tasks, check_runnable
from strata.coordinator.state.tokens import Tokens
from strata.errors import InvalidArgument, UnknownWorker
from strata.types.datasets import ShardAssignment
from strata.types.plain import json_parts, shared
from strata.types.tasks import BUILTIN_TYPES
from strata.types.workers import check_count

__all__ = ["Applied", "ClusterState", "StateConfig"]

_DUMP_VERSION = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class StateConfig:
    """The durations that decide who is alive and how long others wait for them."""

    worker_lease_s: float = 30.0
    agent_lease_s: float = 5.0
    barrier_timeout_s: float = 1800.0
    task_types: tuple[str, ...] = BUILTIN_TYPES


@dataclass(frozen=True, slots=True)
class Applied(Generic[c.Reply]):
    """What a command did: its answer, and what has to be durable before anybody hears it."""

    reply: c.Reply
    events: list[e.Event]


class ClusterState:
    """Membership, datasets, barriers, checkpoints and tasks, and the rules between them."""

    def __init__(self, config: StateConfig) -> None:
        self.config = config
        self.cluster = cluster = Cluster()
        self.membership = Membership(cluster, config.worker_lease_s)
        self.agents = Agents(cluster, config.agent_lease_s)
        self.datasets = Datasets(cluster, self.membership)
        self.barriers = Barriers(self.membership, config.barrier_timeout_s)
        self.checkpoints = Checkpoints(cluster, self.membership)
        self.queues = Queues(cluster, self.membership, self.datasets, self.checkpoints)
        self.readings = Readings(self.membership, self.datasets)
        self.tasks = Tasks(cluster)
        self.tokens = Tokens(cluster)
        self.shares = Shares(cluster, self.membership, self.datasets, self.queues, self.readings)
        self._handlers: dict[type[c.Command[Any]], Callable[[Any, Now, c.Emit], Any]] = {
            c.Start: self._start,
            c.RegisterWorker: self._register_worker,
            c.DeregisterWorker: self._deregister_worker,
            c.LoseWorkers: self._lose_workers,
            c.AttachAgent: self._attach_agent,
            c.LoseAgent: self._lose_agent,
            c.DrainAgent: self._drain_agent,
            c.RegisterDataset: self._register_dataset,
            c.GetShards: self._get_shards,
            c.Arrive: self._arrive,
            c.NotifyCheckpoint: self._notify_checkpoint,
            c.NoteCheck: self._note_check,
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
            c.ClaimShard: self.queues.claim,
            c.CommitShards: self.queues.commit,
            c.RestoreQueue: self.queues.restore,
            c.AnnounceReading: self.readings.announce,
            c.MakeToken: self.tokens.make,
            c.RevokeToken: self.tokens.revoke,
        }

    @property
    def cluster_id(self) -> str:
        return self.cluster.cluster_id

    @property
    def term(self) -> int:
        return self.cluster.term

    def apply(self, command: c.Command[c.Reply], now: Now) -> Applied[c.Reply]:
        """Carries out one command. A refusal is raised before anything has changed."""
        events: list[e.Event] = []

        def emit(*planned: e.Event | None) -> None:
            for event in planned:
                if event is not None:
                    self.evolve(event, now)
                    events.append(event)

        return Applied(self._handlers[type(command)](command, now, emit), events)

    # --- commands: workers and agents

    def _start(self, command: c.Start, now: Now, emit: c.Emit) -> None:
        cluster_id = self.cluster_id or command.cluster_id
        emit(e.ClusterStarted(cluster_id=cluster_id, term=self.term + 1, started_at=now.wall, after=command.after))

    def _register_worker(self, command: c.RegisterWorker, now: Now, emit: c.Emit) -> JoinReply:
        spec = command.spec
        self.tasks.check_member(spec)
        for lost in self.membership.plan_takeover(spec, now):
            self._lose(lost, now, emit)
        joined = self.membership.plan_join(spec, now)
        if joined is not None:
            previous = self.membership.holder(spec.task_id, joined.rank)
            emit(joined)
            self.barriers.on_rank_taken(self.membership.workers[spec.worker_id], previous)
        self.membership.pulses.touch(spec.worker_id, now)
        return self._place_of(self.membership.workers[spec.worker_id])

    def _deregister_worker(self, command: c.DeregisterWorker, now: Now, emit: c.Emit) -> JoinReply:
        worker = self.membership.authorize(command.caller, now)
        self._lose_workers(c.LoseWorkers(gone={worker.worker_id: command.reason}, left=True), now, emit)
        return self._place_of(worker)

    def _place_of(self, worker: Worker) -> JoinReply:
        return JoinReply(
            **shared(JoinReply, worker),
            world_size=self.membership.world_size(worker.task_id),
            generation=self.membership.group_of(worker).generation,
        )

    def _lose_workers(self, command: c.LoseWorkers, now: Now, emit: c.Emit) -> None:
        for lost in self.membership.plan_loss(dict(command.gone), now, left=command.left):
            self._lose(lost, now, emit)

    def _lose(self, lost: e.MembersLost, now: Now, emit: c.Emit) -> None:
        """A loss and all that follows from it, decided together: barriers break, attempts abort, the fence rises."""
        emit(lost, *self.barriers.plan_loss(lost, now), *self.checkpoints.plan_loss(lost, now))

    def _attach_agent(self, command: c.AttachAgent, now: Now, emit: c.Emit) -> None:
        emit(self.agents.plan_join(command.spec, now))
        self.agents.pulses.beat(command.spec.agent_id, None, now)

    def _lose_agent(self, command: c.LoseAgent, now: Now, emit: c.Emit) -> None:
        emit(self.agents.plan_loss(command.agent_id, command.reason, now, left=command.left))

    def _drain_agent(self, command: c.DrainAgent, now: Now, emit: c.Emit) -> None:
        agent_id, reason, noticed = command.agent_id, command.reason, command.noticed
        if reason:
            emit(self.agents.plan_drain(agent_id, reason, command.deadline, now, noticed=noticed))
        else:
            emit(self.agents.plan_stay(agent_id, now, noticed=noticed))

    # --- commands: data

    def _register_dataset(self, command: c.RegisterDataset, now: Now, emit: c.Emit) -> int:
        emit(self.datasets.plan_register(command.spec, now))
        emit(self.datasets.plan_attach("", command.spec.dataset_id))
        return command.spec.num_shards

    def _get_shards(self, command: c.GetShards, now: Now, emit: c.Emit) -> ShardsReply:
        worker = self.membership.authorize(command.caller, now)
        check_count("epoch", command.epoch)
        self._deal(worker.task_id, command.dataset_id, emit)
        assignments = self.shares.assignments(worker, command.dataset_id, command.epoch, first=command.first)
        return ShardsReply(
            assignments=tuple(assignments),
            generation=self.membership.group_of(worker).generation,
            digest=self.datasets.digest(worker.task_id, command.dataset_id),
        )

    def _deal(self, task_id: str, dataset_id: str, emit: c.Emit) -> None:
        """Whoever asks for shards is dealt some, unless its group reads in another way already."""
        if self.shares.mode(task_id, dataset_id) not in ("lanes", "queue"):
            emit(self.datasets.plan_attach(task_id, dataset_id))
            self._rebalance(task_id, emit)

    def _rebalance(self, task_id: str, emit: c.Emit) -> None:
        planned = self.datasets.plan_rebalance(task_id)
        emit(planned)
        if planned is None:
            self.datasets.settle(task_id)

    # --- commands: barriers

    def _arrive(self, command: c.Arrive, now: Now, emit: c.Emit) -> BarrierReply:
        reply, decided = self.barriers.arrive(command.arrival, now)
        emit(decided)
        return reply

    # --- commands: checkpoints

    def _notify_checkpoint(self, command: c.NotifyCheckpoint, now: Now, emit: c.Emit) -> int:
        worker = self.membership.authorize(command.caller, now)
        emit(self.checkpoints.plan_notified(worker, command, now))
        latest = self.checkpoints.latest(worker.task_id)
        return latest.step if latest else command.step

    def _note_check(self, command: c.NoteCheck, now: Now, emit: c.Emit) -> bool:
        known = self.cluster.checkpoints.find(command.checkpoint_id, command.storage_path)
        if known is not None:
            emit(self.checkpoints.plan_verified(known, command.damage, now))
        return known is not None

    def _begin_checkpoint(self, command: c.BeginCheckpoint, now: Now, emit: c.Emit) -> SaveAttempt:
        worker = self.membership.authorize(command.caller, now)
        begun = self.checkpoints.plan_begin(worker, command, now)
        if isinstance(begun, SaveAttempt):
            return begun
        emit(begun)
        return self.checkpoints.attempts[begun.attempt]

    def _vote_checkpoint(self, command: c.VoteCheckpoint, now: Now, emit: c.Emit) -> SaveAttempt:
        worker = self.membership.authorize(command.caller, now)
        emit(self.checkpoints.plan_vote(worker, command.attempt, command.rank, command.vote))
        emit(self.checkpoints.plan_prepared(command.attempt))
        return self.checkpoints.attempts[command.attempt]

    def _commit_checkpoint(self, command: c.CommitCheckpoint, now: Now, emit: c.Emit) -> SaveAttempt:
        # The generation is not asked for: once every rank has voted, a later loss does not unmake the bytes.
        caller = Caller(worker_id=command.caller.worker_id, incarnation=command.caller.incarnation)
        worker = self.membership.authorize(caller, now)
        committed = self.checkpoints.plan_commit(worker, command.attempt, dict(command.metadata), now)
        emit(self.checkpoints.plan_replaced(committed), committed)
        return self.checkpoints.attempts[command.attempt]

    def _abort_checkpoint(self, command: c.AbortCheckpoint, now: Now, emit: c.Emit) -> SaveAttempt:
        worker = self.membership.authorize(command.caller, now)
        emit(self.checkpoints.plan_abort(worker, command.attempt, command.reason, now))
        return self.checkpoints.attempts[command.attempt]

    def _recover(self, command: c.Recover, now: Now, emit: c.Emit) -> RecoverReply:
        worker = self.membership.workers.get(command.caller.worker_id)
        if worker is not None:
            worker = self.membership.authorize(command.caller, now)
        elif not command.job_id or command.job_id not in self.membership.groups:
            raise UnknownWorker(f"worker {command.caller.worker_id!r} is not registered")
        job_id = command.job_id if command.job_id in self.membership.groups else worker.task_id if worker else ""
        checkpoint = self.checkpoints.latest(job_id)
        assignments: list[ShardAssignment] = []
        if worker is not None:
            task = self.tasks.tasks.get(worker.task_id)
            if task is not None and task.spec.dataset_id:
                self._deal(worker.task_id, task.spec.dataset_id, emit)
            self._rebalance(worker.task_id, emit)
            epoch = checkpoint.epoch if checkpoint else 0
            for dataset_id in self.shares.datasets_of(worker.task_id):
                assignments.extend(self.shares.assignments(worker, dataset_id, epoch))
        group = self.membership.groups.get(worker.task_id if worker else job_id)
        return RecoverReply(
            checkpoint=checkpoint,
            assignments=tuple(assignments),
            generation=group.generation if group else 0,
        )

    # --- commands: tasks

    def _submit_task(self, command: c.SubmitTask, now: Now, emit: c.Emit) -> Task:
        earlier = self.tasks.submitted_as(command.request_id)
        if earlier is not None:
            return self.tasks.task(earlier)
        if command.spec.dataset_id:
            self.datasets.spec(command.spec.dataset_id)
        check_runnable(command.spec, self.config.task_types)
        emit(self.tasks.plan_submit(command.task_id, command.spec, command.request_id, now))
        return self.tasks.task(command.task_id)

    def _change_task(self, command: c.ChangeTask, now: Now, emit: c.Emit) -> Task:
        emit(self.tasks.plan_change(command, now))
        return self.tasks.task(command.task_id)

    def _stop_task(self, command: c.StopTask, now: Now, emit: c.Emit) -> Task:
        emit(self.tasks.plan_stop(command.task_id, command.reason, now, hurry=command.hurry))
        return self.tasks.task(command.task_id)

    def _resume_task(self, command: c.ResumeTask, now: Now, emit: c.Emit) -> int:
        step = self.checkpoints.latest_step(command.task_id)
        emit(self.tasks.plan_resume(command.task_id, command.by, step, now))
        return step

    # --- time

    def _tick(self, _command: c.Tick, now: Now, emit: c.Emit) -> None:
        emit(*self.agents.plan_expiry(now))
        gone = self.agents.gone_with(self.membership, now) | self.membership.pulses.look(self.membership.alive, now)
        for lost in self.membership.plan_loss(gone, now):
            self._lose(lost, now, emit)
        emit(*self.barriers.plan_expiry(now), *self.checkpoints.plan_expiry(now))
        for task_id in self.datasets.readers():
            self._rebalance(task_id, emit)
        self.barriers.forget_old(now)
        self.membership.pulses.forget_others(self.cluster.workers)

    def renew_leases(self, now: Now) -> None:
        """Everybody gets a fresh full term: after a restart or a stall of our own, silence proves nothing."""
        self.membership.pulses.renew(self.membership.alive(), now)
        self.agents.pulses.renew(self.agents.alive(), now)

    # --- events

    def evolve(self, event: e.Event, now: Now) -> None:
        """Makes one event true. The only place where durable state changes, live and on replay."""
        match event:
            case e.BarrierReleased() | e.BarrierBroke():
                self.barriers.on_outcome(event, now)
            case e.WorkerJoined():
                self.membership.on_joined(event, now)
            case e.MembersLost():
                self.barriers.on_lost(event)
                self.membership.on_lost(event)
            case e.AgentJoined():
                self.agents.pulses.start(event.agent_id, now)
            case e.DatasetAttached():
                self.datasets.on_attached(event)
            case e.ShardsRebalanced():
                self.datasets.on_rebalanced(event)
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
            case e.TaskSubmitted():
                self.tasks.on_submitted(event)
            case e.TaskChanged():
                self.tasks.on_changed(event)
            case _:
                pass
        self.readings.evolve(event)
        self.cluster.evolve(event)
        if isinstance(event, e.AgentJoined | e.AgentDraining | e.AgentLost):
            self.agents.on_changed(event.agent_id)

    # --- snapshots

    def copy(self) -> dict[str, Any]:
        """Everything durable, for the journal, as `json_parts` writes it while the state goes on. What barriers know of
        their ends is not in it: the journal keeps those events."""
        return {
            "version": _DUMP_VERSION,
            "cluster": copy_cluster(self.cluster),
            "seats": self.membership.dump(),
            "shards": self.datasets.dump(),
            "checkpoints": self.checkpoints.copy(),
            "readings": self.readings.dump(),
            "requests": dict(self.tasks.requests),
        }

    def dump(self) -> Any:
        """The same, as a reader of the snapshot finds it."""
        return json.loads("".join(json_parts(self.copy())))

    def load(self, dumped: dict[str, Any], now: Now) -> None:
        """Fills a fresh state from a dump."""
        if dumped["version"] == 1:
            self.load(renewed(dumped), now)
            for item in dumped["barriers"]:
                self.evolve(e.decode_event(item["kind"], item["body"].encode()), now)
            return
        if dumped["version"] != _DUMP_VERSION:
            raise InvalidArgument(f"a state of version {dumped['version']} cannot be read by this release")
        load_cluster(self.cluster, dumped["cluster"])
        self.membership.load(dumped["seats"], now)
        self.agents.load(now)
        self.tasks.load()
        self.datasets.load(dumped["shards"])
        self.checkpoints.load(dumped["checkpoints"], now)
        self.readings.load(dumped["readings"])
        self.tasks.requests.update(dumped["requests"])
