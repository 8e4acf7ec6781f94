"""The cluster's records, folded from a snapshot and the events after it. Pure: no wire, no clock, no encoding.

Bodies are read by name and unknown kinds are passed over, so that a newer coordinator can still be followed.
"""

import json
from collections.abc import Callable
from typing import Any

from strata.checkpoint.layout import parse_step
from strata.observatory.answers.cluster import COLLECTIONS
from strata.observatory.cluster.queues import QueueBook
from strata.types.shown import to_shown

__all__ = ["Cluster", "root_of"]

_KEEP_BARRIERS = 200
_KEEP_CHECKPOINTS = 2_000
# Retention removes one per save, for as long as a task runs; the store keeps them all.
_KEEP_REMOVED = 100

_CHANGED = ("status", "attempt", "reason")

Record = dict[str, Any]


def root_of(path: str) -> str:
    """The store of a checkpoint, from the address of the store or of the checkpoint's own folder in it."""
    parent, _, name = path.rstrip("/").rpartition("/")
    return parent if parent and parse_step(name) is not None else path


class Cluster:
    """`dirty` names the collections that changed since somebody last cleared it."""

    def __init__(self) -> None:
        self.seq = 0
        self.cluster_id = ""
        self.term: int | None = None
        self.started_at: float | None = None
        self.workers: dict[str, Record] = {}
        self.generations: dict[str, int] = {}
        self.datasets: dict[str, Record] = {}
        self.tasks: dict[str, Record] = {}
        self.agents: dict[str, Record] = {}
        self.checkpoints: dict[str, Record] = {}
        self.outcomes: dict[str, Record] = {}
        self.waiting: list[Record] = []
        self.vitals: dict[str, Record] = {}
        self.figures: Record = {}
        self.queues = QueueBook()
        self.pins: dict[str, frozenset[int] | None] = {}  # by store; None: it could not be read
        self.dirty: set[str] = set(COLLECTIONS)
        self.unshown: dict[str, str] = {}  # records that no view could be made of, and why
        self._attempts: dict[str, str] = {}
        self._handlers: dict[str, Callable[[Record], None]] = {
            "ClusterStarted": self._on_started,
            "WorkerJoined": self._on_worker_joined,
            "MembersLost": self._on_members_lost,
            "AgentJoined": self._on_agent_joined,
            "AgentLost": self._on_agent_lost,
            "DatasetRegistered": self._on_dataset,
            "ShardsRebalanced": self._on_rebalanced,
            "CheckpointBegun": self._on_begun,
            "CheckpointVoted": self._on_voted,
            "CheckpointCommitted": self._on_committed,
            "CheckpointAborted": self._on_aborted,
            "CheckpointRemoved": self._on_removed,
            "CheckpointVerified": self._on_verified,
            "BarrierReleased": self._on_released,
            "BarrierBroke": self._on_broke,
            "TaskSubmitted": self._on_submitted,
            "TaskChanged": self._on_changed,
        }

    def load(self, seq: int, state: Record) -> None:
        """A snapshot replaces everything; it is the coordinator's own dump."""
        vitals, pins = self.vitals, self.pins
        self.__init__()  # type: ignore[misc]  # a fresh fold, nothing of the old one may stay
        self.vitals, self.pins = vitals, pins
        self.seq = seq
        self.cluster_id, self.term, self.started_at = state["cluster_id"], state["term"], state["started_at"]
        self.workers = {worker["worker_id"]: worker for worker in state["workers"]}
        self.generations = {group["task_id"]: group["generation"] for group in state["groups"]}
        self.agents = {agent["agent_id"]: agent for agent in state["agents"]}
        for item in state["datasets"]:
            spec = item["spec"]
            self.datasets[spec["dataset_id"]] = {**spec, "registered_at": item["registered_at"]}
        self.queues.load(state.get("queues", []), self.datasets)
        self.checkpoints = {record["id"]: record for record in state["checkpoints"]}
        self._attempts = dict(state["attempts"])
        for item in state["barriers"]:
            status = "broken" if item["broken"] else "complete"
            self._put_outcome({**item, "status": status, "at": item["ended_at"]})
        for task in state["tasks"]:
            flat = {**task["spec"], **{name: value for name, value in task.items() if name != "spec"}}
            self.tasks[task["task_id"]] = {**flat, "config": to_shown(flat["config"])}

    def apply(self, seq: int, kind: str, body: Record) -> None:
        """One event; a kind that this release does not know changes nothing."""
        self.seq = max(self.seq, seq)
        handler = self._handlers.get(kind)
        if handler is not None:
            handler(body)
        if self.queues.apply(kind, body, self.datasets):
            self.dirty.add("datasets")

    def set_vitals(self, workers: dict[str, Record], waiting: list[Record], figures: Record) -> None:
        """What changes all the time. `workers` holds only those that changed."""
        if workers:
            self.vitals.update(workers)
            self.dirty |= {"workers", "tasks", "datasets"}
        if waiting != self.waiting:
            self.waiting = waiting
            self.dirty.add("barriers")
        self.figures = figures
        self.dirty.add("metrics")

    def set_pins(self, root: str, steps: frozenset[int] | None) -> None:
        """Read from the store of some checkpoints, not from the coordinator: it does not know of pins."""
        if root not in self.pins or self.pins[root] != steps:
            self.pins[root] = steps
            self.dirty.add("checkpoints")

    def mark_missing(self, checkpoint_ids: list[str]) -> None:
        """Their store was read, and they are not in it: somebody deleted them without a word."""
        if checkpoint_ids:
            self._on_removed({"checkpoint_ids": checkpoint_ids, "reason": "no longer in its store"})

    def _on_started(self, body: Record) -> None:
        self.cluster_id, self.term, self.started_at = body["cluster_id"], body["term"], body["started_at"]
        self.dirty.add("coordinator")

    def _on_worker_joined(self, body: Record) -> None:
        self.workers[body["worker_id"]] = {**body, "joined_at": body["at"], "state": "ready", "reason": ""}
        self.vitals.pop(body["worker_id"], None)
        self.generations[body["task_id"]] = body["generation"]
        self.dirty |= {"workers", "tasks", "coordinator", "metrics"}

    def _on_members_lost(self, body: Record) -> None:
        for worker_id, reason in zip(body["worker_ids"], body["reasons"], strict=True):
            worker = self.workers.get(worker_id)
            if worker is not None:
                state = "left" if body["left"] else "lost"
                self.workers[worker_id] = {**worker, "state": state, "reason": reason, "ended_at": body["at"]}
                vitals = self.vitals.get(worker_id)
                if vitals is not None:
                    self.vitals[worker_id] = {**vitals, "member_state": state}
        self.generations[body["task_id"]] = body["generation"]
        self.dirty |= {"workers", "tasks", "coordinator", "metrics"}

    def _on_agent_joined(self, body: Record) -> None:
        self.agents[body["agent_id"]] = {**body, "state": "ready", "reason": ""}

    def _on_agent_lost(self, body: Record) -> None:
        known = self.agents.get(body["agent_id"], {})
        state = "left" if body["left"] else "lost"
        self.agents[body["agent_id"]] = {**known, "state": state, "reason": body["reason"]}

    def _on_dataset(self, body: Record) -> None:
        self.datasets[body["dataset_id"]] = {**body, "registered_at": body["at"]}
        self.dirty.add("datasets")

    def _on_rebalanced(self, body: Record) -> None:
        self.generations[body["task_id"]] = max(body["generation"], self.generations.get(body["task_id"], 0))
        self.dirty |= {"workers", "coordinator"}

    def _on_begun(self, body: Record) -> None:
        self._attempts[body["attempt"]] = body["checkpoint_id"]
        self._put_checkpoint(
            {
                "id": body["checkpoint_id"],
                "step": body["step"],
                "epoch": body["epoch"],
                "path": body["storage_path"],
                "size_bytes": 0,
                "created_at": body["at"],
                "status": "in_progress",
                "worker_id": body["worker_id"],
                "task_id": body["task_id"] or None,
                "reason": "",
            }
        )

    def _on_voted(self, body: Record) -> None:
        record = self.checkpoints.get(self._attempts.get(body["attempt"], ""))
        if record is not None:
            self._put_checkpoint({**record, "size_bytes": record["size_bytes"] + body["size_bytes"]})

    def _on_committed(self, body: Record) -> None:
        known = self.checkpoints.get(body["checkpoint_id"], {})
        duration = body["duration_s"]
        self._put_checkpoint(
            {
                **known,
                "id": body["checkpoint_id"],
                "step": body["step"],
                "epoch": body["epoch"],
                "path": body["storage_path"],
                "size_bytes": body["size_bytes"],
                "created_at": body["at"],
                "status": "completed",
                "worker_id": body["worker_id"],
                "task_id": body["task_id"] or None,
                "duration_s": duration,
                "reason": "",
            }
        )

    def _on_aborted(self, body: Record) -> None:
        record = self.checkpoints.get(self._attempts.get(body["attempt"], ""))
        if record is not None:
            self._put_checkpoint({**record, "status": "failed", "reason": body["reason"]})

    def _on_removed(self, body: Record) -> None:
        for checkpoint_id in body["checkpoint_ids"]:
            record = self.checkpoints.get(checkpoint_id)
            if record is not None:
                self._put_checkpoint({**record, "status": "removed", "reason": body["reason"]})
        removed = [name for name, record in self.checkpoints.items() if record["status"] == "removed"]
        for name in removed[:-_KEEP_REMOVED]:
            del self.checkpoints[name]

    def _on_verified(self, body: Record) -> None:
        record = self.checkpoints.get(body["checkpoint_id"])
        if record is not None:
            verdict = {"verified": not body["damage"], "verified_at": body["at"], "reason": body["damage"]}
            self._put_checkpoint({**record, **verdict})

    def _put_checkpoint(self, record: Record) -> None:
        self.checkpoints[record["id"]] = record
        while len(self.checkpoints) > _KEEP_CHECKPOINTS:
            del self.checkpoints[next(iter(self.checkpoints))]
        self.dirty |= {"checkpoints", "metrics"}

    def _on_released(self, body: Record) -> None:
        arrived = len(body["worker_ids"])
        self._put_outcome(body, arrived=arrived, total=arrived, status="complete", missing=[], reason="")

    def _on_broke(self, body: Record) -> None:
        self._put_outcome(
            body,
            arrived=len(body["worker_ids"]),
            total=body["total"],
            status="broken",
            missing=list(body["missing"]),
            reason=body["reason"],
        )

    def _put_outcome(self, body: Record, **outcome: Any) -> None:
        key = f"{body['task_id']}/{body['barrier_id']}/{body['step']}/{body['round']}"
        self.outcomes.pop(key, None)
        self.outcomes[key] = {**body, **outcome, "key": key, "ended_at": body["at"]}
        while len(self.outcomes) > _KEEP_BARRIERS:
            del self.outcomes[next(iter(self.outcomes))]
        self.dirty.add("barriers")

    def _on_submitted(self, body: Record) -> None:
        config = to_shown(json.loads(body["config_json"])) if body["config_json"] else {}
        defaults = {
            "status": "queued",
            "attempt": 0,
            "reason": "",
            "started_at": None,
            "completed_at": None,
            "course": {},
        }
        self.tasks[body["task_id"]] = {**body, **defaults, "config": config, "submitted_at": body["at"]}
        self.dirty.add("tasks")

    def _on_changed(self, body: Record) -> None:
        task = self.tasks.get(body["task_id"])
        if task is None:
            return
        course = {name: value for name, value in body.items() if name not in ("task_id", *_CHANGED, "at")}
        task = {**task, **{name: body[name] for name in _CHANGED}, "course": course}
        if body["status"] == "running" and task["started_at"] is None:
            task["started_at"] = body["at"]
        task["completed_at"] = body["at"] if body["status"] in ("completed", "failed", "stopped") else None
        self.tasks[body["task_id"]] = task
        self.dirty.add("tasks")
