"""The cluster as the observatory follows it: the coordinator's own records, made of the same events by the same rule,
and beside them what is no record: vitals, and what only the stores of checkpoints know. Pure: no wire, no clock.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from strata.checkpoint.layout import parse_step
from strata.cluster import events as e
from strata.cluster.members import Worker
from strata.cluster.model import Cluster
from strata.cluster.snapshot import Guard, load_cluster
from strata.observatory.answers.cluster import COLLECTIONS
from strata.observatory.cluster.vitals import UNHEARD, WorkerVitals
from strata.protocol.generated import control_pb2 as ct
from strata.types.checkpoints import CheckpointInfo, CheckpointStatus
from strata.types.shown import to_shown
from strata.types.workers import MemberState

__all__ = ["CHANGES", "FollowedCluster", "root_of"]

# The collections that an event may change; every kind of event is here.
CHANGES: dict[type[e.Event], set[str]] = {
    e.ClusterStarted: {"coordinator"},
    e.WorkerJoined: {"workers", "tasks", "coordinator", "metrics"},
    e.MembersLost: {"workers", "tasks", "datasets", "coordinator", "metrics"},
    e.DatasetRegistered: {"datasets"},
    e.CheckpointBegun: {"checkpoints", "metrics"},
    e.CheckpointVoted: {"checkpoints", "metrics"},
    e.CheckpointCommitted: {"checkpoints", "datasets", "metrics"},
    e.CheckpointAborted: {"checkpoints", "metrics"},
    e.CheckpointRemoved: {"checkpoints", "metrics"},
    e.CheckpointVerified: {"checkpoints"},
    e.CheckpointPrepared: set(),
    e.DatasetAttached: set(),
    e.ReadingAnnounced: set(),
    e.ShardsRebalanced: set(),
    e.AgentDraining: set(),
    e.AgentJoined: set(),
    e.AgentLost: set(),
    e.BarrierReleased: {"barriers"},
    e.BarrierBroke: {"barriers"},
    e.TaskSubmitted: {"tasks"},
    e.TaskChanged: {"tasks", "datasets"},
    e.TokenMade: set(),
    e.TokenRevoked: set(),
    e.QueueOpened: {"datasets"},
    e.QueueLeased: {"datasets"},
    e.QueueEnded: {"datasets"},
    e.QueueCommitted: {"datasets"},
    e.QueueStaged: {"datasets"},
    e.QueueRestored: {"datasets"},
}


def root_of(path: str) -> str:
    """The store of a checkpoint, from the address of the store or of the checkpoint's own folder in it."""
    parent, _, name = path.rstrip("/").rpartition("/")
    return parent if parent and parse_step(name) is not None else path


class FollowedCluster:
    """`dirty` names the collections that changed since somebody last cleared it."""

    def __init__(self) -> None:
        self.seq = 0
        self.records = Cluster()
        self.vitals: dict[str, WorkerVitals] = {}
        self.waiting: list[ct.BarrierVitals] = []
        self.figures: dict[str, Any] = {}
        self.spares: dict[str, ct.TaskSpares] = {}
        self.pins: dict[str, frozenset[int] | None] = {}  # by store; None: it could not be read
        self.missing: dict[str, frozenset[str]] = {}  # by store: checkpoints that somebody deleted without a word
        self.dirty: set[str] = set(COLLECTIONS)
        self.unshown: dict[str, str] = {}  # records that no view could be made of, and why
        self._configs: dict[str, Any] = {}
        self._present: list[Worker] | None = None

    def load(self, seq: int, dumped: Mapping[str, Any], guard: Guard) -> None:
        """All records at one moment; nothing of the old ones stays."""
        records = Cluster()
        load_cluster(records, dumped, guard)
        self.seq, self.records = seq, records
        self._configs.clear()
        self._present = None
        self.dirty |= set(COLLECTIONS)

    def apply(self, event: e.Event) -> None:
        self.records.evolve(event)
        self.dirty |= CHANGES[type(event)]
        if isinstance(event, e.WorkerJoined | e.MembersLost):
            self._present = None
        if isinstance(event, e.WorkerJoined):
            self.vitals.pop(event.worker_id, None)  # of the process before
        elif isinstance(event, e.MembersLost):
            for name in self.vitals.keys() - self.records.workers.keys():
                del self.vitals[name]

    def set_vitals(
        self,
        workers: dict[str, WorkerVitals],
        waiting: list[ct.BarrierVitals],
        figures: dict[str, Any],
        spares: Sequence[ct.TaskSpares] = (),
    ) -> None:
        """What changes all the time. `workers` holds only those that changed."""
        warm = {one.task_id: one for one in spares}
        if warm != self.spares:
            self.spares = warm
            self.dirty.add("tasks")
        if workers:
            self.vitals.update(workers)
            self.dirty |= {"workers", "tasks", "datasets"}
        if waiting != self.waiting:
            self.waiting = waiting
            self.dirty.add("barriers")
        self.figures = figures
        self.dirty.add("metrics")

    def set_store(self, root: str, pins: frozenset[int] | None, missing: frozenset[str] = frozenset()) -> None:
        """Read from the store of some checkpoints, not from the coordinator: it does not know of pins, nor of what
        somebody deletes there by hand."""
        if root not in self.pins or (self.pins[root], self.missing.get(root)) != (pins, missing):
            self.pins[root], self.missing[root] = pins, missing
            self.dirty.add("checkpoints")

    def present(self) -> list[Worker]:
        """Everybody who is alive or died, by task and rank; those who left in peace are gone."""
        if self._present is None:
            here = [worker for worker in self.records.workers.values() if worker.state is not MemberState.LEFT]
            self._present = sorted(here, key=lambda worker: (worker.task_id, worker.rank))
        return self._present

    def vitals_of(self, worker_id: str) -> WorkerVitals:
        return self.vitals.get(worker_id, UNHEARD)

    def is_complete(self, record: CheckpointInfo) -> bool:
        """Whether it can be loaded: its commit is known, and its store has it as far as anybody looked."""
        gone = self.missing.get(root_of(record.path), frozenset())
        return record.status is CheckpointStatus.COMPLETED and record.id not in gone

    def config_of(self, task_id: str) -> Any:
        """A task's config as it can be shown. It never changes, and is large."""
        if task_id not in self._configs:
            self._configs[task_id] = to_shown(dict(self.records.tasks[task_id].spec.config))
        return self._configs[task_id]
