"""Tasks: jobs that users submit. A task has attempts; its status and the reason for it are always known."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from strata.errors import InvalidArgument
from strata.types.code import check_digest, check_inside
from strata.types.faults import Fault
from strata.types.forks import TaskFork
from strata.types.names import check_name

__all__ = [
    "BUILTIN_TYPES",
    "GROW_AFTER_S",
    "LAUNCHERS",
    "LOSS_WINDOW_S",
    "MAX_HANG_S",
    "MAX_LOSSES",
    "MAX_STALLED",
    "MIN_HANG_S",
    "PORTS",
    "SPARE_BYTES",
    "TaskCourse",
    "TaskFacts",
    "TaskSpec",
    "TaskStatus",
    "check_hang_timeout",
    "incarnation_of",
    "loss_budget",
    "mask_env",
    "read_hang_timeout",
    "worker_id_of",
]

BUILTIN_TYPES = ("training",)
LAUNCHERS = ("kubernetes", "local", "ray", "slurm", "ssh")
MIN_HANG_S, MAX_HANG_S = 3.0, 1e9
PORTS = (20_000, 21_000)  # where ranks meet: below what the system gives to outgoing connections
MAX_STALLED = 3  # failures of its own in a row, with no new checkpoint among them
MAX_LOSSES = 20  # kills from outside and lost hosts within the window, with no new checkpoint among them
LOSS_WINDOW_S = 6 * 3600.0
GROW_AFTER_S = 30.0  # for which slots must have been free before a task takes them
SPARE_BYTES = 32 << 20  # a warm interpreter with the SDK and NumPy holds at least this

_MAX_CONFIG_BYTES = 256 * 1024
_MAX_WORKERS = 16_384
_MAX_GPUS = 1024
_MAX_GROW_AFTER_S = 7 * 86_400.0


def check_hang_timeout(value: float) -> float:
    """Returns it. Ranks say once a second how far they are: a shorter limit would end healthy ones."""
    if not (value == 0 or MIN_HANG_S <= value <= MAX_HANG_S):
        raise InvalidArgument(
            f"hang_timeout_s is {value}, it must be between {MIN_HANG_S:g} and {MAX_HANG_S:g} seconds, or 0",
            hint="0, or off on the command line: no rank is ended. Left out: the limit is learned from its steps.",
        )
    return value


def read_hang_timeout(text: str) -> float:
    """A limit as people write it: seconds, or off."""
    if text.strip().lower() == "off":
        return 0.0
    try:
        return check_hang_timeout(float(text))
    except ValueError:
        raise InvalidArgument(f"the hang timeout {text!r} is neither a number of seconds nor off") from None


def mask_env(env: Mapping[str, str]) -> dict[str, str]:
    """As a task's env is shown: names, no values, which may be keys and passwords."""
    return dict.fromkeys(env, "***")


def worker_id_of(task_id: str, rank: int) -> str:
    return f"{task_id}-{rank}"


def incarnation_of(task_id: str, attempt: int, rank: int, life: int = 0) -> str:
    """One process per attempt, rank and life, ever: so this names it, and nobody has to invent or report a random
    one."""
    return f"{task_id}.{attempt}.{rank}.{life}" if life else f"{task_id}.{attempt}.{rank}"


class TaskStatus(StrEnum):
    """Where a task stands. The last three are final."""

    QUEUED = "queued"
    RUNNING = "running"
    RECOVERING = "recovering"
    STOPPING = "stopping"
    COMPLETED = "completed"
    FAILED = "failed"
    STOPPED = "stopped"

    @property
    def final(self) -> bool:
        return self in (TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.STOPPED)


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """What a user's words and the event of their submission both hold. A task is elastic when `min_workers` is less
    than `worker_count`: it has as many ranks as there are slots for, between the two, and takes more when slots were
    free for `grow_after_s`."""

    name: str
    type: str = "training"
    dataset_id: str = ""
    worker_count: int = 1
    entrypoint: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    launcher: str = "local"
    max_restarts: int = 3
    working_dir: str = ""
    min_workers: int = 0  # 0: as many as worker_count
    grow_after_s: float = GROW_AFTER_S
    spares: int = 0
    hang_timeout_s: float | None = None  # without a step for so long, a rank is ended; 0: never; None: it is learned
    gpus_per_worker: int = 0  # cards that each rank alone holds; 0: it is given none, and sees what its agent sees
    exclude_stragglers: bool = False  # the host of a rank that holds up the others is left, where that is quicker
    saves_at_home: bool = False  # it is known to save in the default place of checkpoints, which its hosts must share
    code: str = ""  # the hash of the code that goes along; `working_dir` is then a path inside it


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskSpec(TaskFacts):
    """What a user asks for when submitting a task."""

    config: Mapping[str, Any] = field(default_factory=dict)
    fork: TaskFork | None = None  # it begins with a checkpoint of another task

    @property
    def least_workers(self) -> int:
        return self.min_workers or self.worker_count

    def __post_init__(self) -> None:
        check_name("task name", self.name)
        check_name("task type", self.type)
        check_name("launcher", self.launcher)
        if self.dataset_id:
            check_name("dataset_id", self.dataset_id)
        if not 1 <= self.worker_count <= _MAX_WORKERS:
            raise InvalidArgument(f"worker_count is {self.worker_count}, it must be between 1 and {_MAX_WORKERS}")
        if not 0 <= self.min_workers <= self.worker_count:
            raise InvalidArgument(
                f"min_workers is {self.min_workers}, it must be between 1 and worker_count ({self.worker_count})"
            )
        if not 0 <= self.grow_after_s <= _MAX_GROW_AFTER_S:
            raise InvalidArgument(
                f"grow_after_s is {self.grow_after_s}, it must be between 0 and {_MAX_GROW_AFTER_S:g} seconds"
            )
        if self.max_restarts < 0:
            raise InvalidArgument(f"max_restarts is {self.max_restarts}, it must be 0 or more")
        if not 0 <= self.spares <= _MAX_WORKERS:
            raise InvalidArgument(f"spares is {self.spares}, it must be between 0 and {_MAX_WORKERS}")
        if not 0 <= self.gpus_per_worker <= _MAX_GPUS:
            raise InvalidArgument(f"gpus_per_worker is {self.gpus_per_worker}, it must be between 0 and {_MAX_GPUS}")
        if self.code:
            check_digest(self.code)
            check_inside(self.working_dir)
        if self.hang_timeout_s is not None:
            check_hang_timeout(self.hang_timeout_s)
        try:
            size = len(json.dumps(dict(self.config)))
        except (TypeError, ValueError, RecursionError) as error:
            raise InvalidArgument(f"config is not JSON: {error}") from None
        if size > _MAX_CONFIG_BYTES:
            raise InvalidArgument(f"config has {size} bytes as JSON, {_MAX_CONFIG_BYTES} are allowed")


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskCourse:
    """How a task got to where it is. `placement` is the agent of each rank of the current attempt, `step` the newest
    committed checkpoint's when that attempt began (-1: none), `retry_at` (Unix seconds) when the next may begin.

    Its budgets: `failures` of its own and `preemptions` (losses: kills from outside, lost hosts) so far, `stalled`
    failures in a row that brought no new checkpoint, and `losses` that brought none since `losses_since`. `stuck_rank`
    is the rank that makes no step now, `stuck_step` where it stands, and `hung_s` for how long, once it is to be ended
    (None: it is only named). `leaving` says why the ranks of a running task leave for the next attempt, `stop_at` at
    which step they leave together, which is also a stopping task's (-1: not known), and `stop_agreed` that all have
    heard of it in time; `hurry` when a stopping task no longer waits for a save. `slow_rank` is the straggler that is
    named now, `excluded` are the agents that were left because of one.

    `in_place` once every rank of the attempt has said that it goes on in its own process when another is replaced;
    `lives` counts per rank how often that was done in this attempt (empty: never). `interruptions` counts what made
    ranks end or leave before their work was done, and `faults` are those of the newest, the one to blame first.
    `home` is the folder or bucket for checkpoints that the hosts of its newest attempt share (empty: none)."""

    placement: tuple[str, ...] = ()
    home: str = ""
    master_addr: str = ""
    master_port: int = 0
    gang_port: int = 0
    failures: int = 0
    preemptions: int = 0
    stalled: int = 0
    losses: int = 0
    losses_since: float = 0.0
    step: int = -1
    retry_at: float = 0.0
    stuck_rank: int | None = None
    stuck_step: int | None = None
    leaving: str = ""
    hung_s: float | None = None
    stop_at: int = -1
    stop_agreed: bool = False
    hurry: bool = False
    in_place: bool = False
    lives: tuple[int, ...] = ()
    slow_rank: int | None = None
    excluded: tuple[str, ...] = ()
    interruptions: int = 0
    faults: tuple[Fault, ...] = ()

    def life(self, rank: int) -> int:
        """How often this rank was replaced in the current attempt."""
        return self.lives[rank] if rank < len(self.lives) else 0

    @property
    def world(self) -> int:
        """The number of the world that trains now: it rises with every rank that is replaced."""
        return sum(self.lives)


def loss_budget(max_restarts: int) -> int:
    """How many losses without a new checkpoint a task gets over: as many as its restarts, if those are more."""
    return max(MAX_LOSSES, max_restarts)
