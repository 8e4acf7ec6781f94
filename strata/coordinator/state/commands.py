"""What can be asked of the cluster's state. A command that is refused changes nothing."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from strata.cluster.events import Event
from strata.cluster.tasks import Task
from strata.coordinator.state.attempts import SaveAttempt, Vote
from strata.coordinator.state.membership import Caller
from strata.coordinator.state.replies import BarrierReply, JoinReply, RecoverReply, ShardsReply
from strata.types.barriers import BarrierArrival
from strata.types.datasets import DatasetSpec
from strata.types.queues import LeaseProgress, QueueGrant
from strata.types.tasks import TaskCourse, TaskSpec, TaskStatus
from strata.types.tokens import TokenRecord
from strata.types.workers import AgentSpec, WorkerSpec

__all__ = [
    "AbortCheckpoint",
    "AnnounceReading",
    "Arrive",
    "AttachAgent",
    "BeginCheckpoint",
    "ChangeTask",
    "ClaimShard",
    "Command",
    "CommitCheckpoint",
    "CommitShards",
    "DeregisterWorker",
    "DrainAgent",
    "Emit",
    "GetShards",
    "LoseAgent",
    "LoseWorkers",
    "MakeToken",
    "NoteCheck",
    "NotifyCheckpoint",
    "Recover",
    "RegisterDataset",
    "RegisterWorker",
    "Reply",
    "RestoreQueue",
    "ResumeTask",
    "RevokeToken",
    "Start",
    "StopTask",
    "SubmitTask",
    "Tick",
    "VoteCheckpoint",
]

Reply = TypeVar("Reply", covariant=True)


class Emit(Protocol):
    """Applies events to the state, in order, and adds them to what is journaled. Ignores None."""

    def __call__(self, *events: Event | None) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Command(Generic[Reply]):
    """The root of all commands; `Reply` is what one is answered with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Start(Command[None]):
    """A coordinator process takes over, and found records up to this number. `cluster_id` is used the first time
    only."""

    cluster_id: str
    after: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterWorker(Command[JoinReply]):
    spec: WorkerSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class DeregisterWorker(Command[JoinReply]):
    caller: Caller
    reason: str = "left"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseWorkers(Command[None]):
    """Ends that somebody saw: worker id → why. `left` means that they were asked to go."""

    gone: Mapping[str, str]
    left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachAgent(Command[None]):
    spec: AgentSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class LoseAgent(Command[None]):
    agent_id: str
    reason: str
    left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainAgent(Command[None]):
    """A host goes away; with no reason, it stays after all. `noticed`: its agent says so itself."""

    agent_id: str
    reason: str
    deadline: float | None = None  # Unix seconds
    noticed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisterDataset(Command[int]):
    spec: DatasetSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class GetShards(Command[ShardsReply]):
    """A worker's shards; `first` asks only for the one to begin with."""

    caller: Caller
    dataset_id: str
    epoch: int
    first: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class AnnounceReading(Command[bool]):
    """A worker's loader begins to read. `sizes` are the samples of the dataset's blocks, deflated; they may be left
    out where the coordinator knows this cut already."""

    caller: Caller
    dataset_id: str
    manifest: str
    num_lanes: int
    shuffle: bool
    lanes: tuple[int, ...]
    sizes: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimShard(Command[QueueGrant]):
    """Queue mode: a worker is free. `held` names all its leases, and how far it has read them."""

    caller: Caller
    dataset_id: str
    epoch: int
    held: tuple[LeaseProgress, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitShards(Command[QueueGrant]):
    """Queue mode: these rows count; with a `step`, when the checkpoint of that step is committed."""

    caller: Caller
    dataset_id: str
    epoch: int
    progress: tuple[LeaseProgress, ...]
    step: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreQueue(Command[QueueGrant]):
    """Queue mode: the group goes on from the checkpoint of this step; -1 = it has none."""

    caller: Caller
    dataset_id: str
    step: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrive(Command[BarrierReply]):
    arrival: BarrierArrival


@dataclass(frozen=True, slots=True, kw_only=True)
class NotifyCheckpoint(Command[int]):
    """A plain worker saved a checkpoint by itself."""

    caller: Caller
    checkpoint_id: str
    step: int
    epoch: int
    storage_path: str
    size_bytes: int
    type: int = 0
    duration_s: float | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class NoteCheck(Command[bool]):
    """Somebody has read every byte of a checkpoint; `damage` says what is not as it was written. Answers whether there
    is such a checkpoint."""

    checkpoint_id: str
    storage_path: str
    damage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class BeginCheckpoint(Command[SaveAttempt]):
    caller: Caller
    step: int
    epoch: int
    storage_path: str
    deadline_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class VoteCheckpoint(Command[SaveAttempt]):
    caller: Caller
    attempt: str
    rank: int
    vote: Vote


@dataclass(frozen=True, slots=True, kw_only=True)
class AbortCheckpoint(Command[SaveAttempt]):
    """A rank cannot save its part."""

    caller: Caller
    attempt: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CommitCheckpoint(Command[SaveAttempt]):
    """COMMIT.json of a prepared attempt exists."""

    caller: Caller
    attempt: str
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recover(Command[RecoverReply]):
    caller: Caller
    job_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitTask(Command[Task]):
    task_id: str
    spec: TaskSpec
    request_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeTask(Command[Task]):
    task_id: str
    status: TaskStatus
    reason: str
    attempt: int
    course: TaskCourse


@dataclass(frozen=True, slots=True, kw_only=True)
class StopTask(Command[Task]):
    task_id: str
    reason: str = "stopped by the user"
    hurry: bool = False  # no time to save


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeTask(Command[int]):
    """Replies with the step it goes on from, -1 without a checkpoint."""

    task_id: str
    by: str = "resumed by the user"


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick(Command[None]):
    """Time has passed: leases, barriers and checkpoint deadlines are checked, shards of changed groups dealt."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MakeToken(Command[TokenRecord]):
    token: TokenRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class RevokeToken(Command[TokenRecord]):
    token_id: str
