"""Workers and agents as the coordinator knows them: what they say of themselves, and where they stand."""

import signal
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from strata.errors import InvalidArgument
from strata.types.names import check_name
from strata.types.shown import check_text

__all__ = [
    "ALL_STACKS_SIGNAL",
    "STACK_SIGNAL",
    "AgentFacts",
    "AgentSpec",
    "MemberState",
    "WorkerFacts",
    "WorkerSpec",
    "check_count",
    "check_metadata",
]

# An agent sends them to have a rank print the stack of its main thread, or those of all threads. Of those that neither
# systems nor frameworks use. The second may crash a rank whose other threads run: it is for one that is killed next.
STACK_SIGNAL = signal.SIGRTMIN + 5
ALL_STACKS_SIGNAL = signal.SIGRTMIN + 6

_MAX_METADATA_BYTES = 64 * 1024


class MemberState(StrEnum):
    """Where a worker or an agent stands. Only READY, SUSPECT and DRAINING ones count as alive."""

    JOINING = "joining"
    READY = "ready"
    SUSPECT = "suspect"
    DRAINING = "draining"
    LOST = "lost"
    LEFT = "left"

    @property
    def alive(self) -> bool:
        return self in _ALIVE


_ALIVE = frozenset({MemberState.READY, MemberState.SUSPECT, MemberState.DRAINING})


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerFacts:
    """What a worker's own words, the event of its joining and its record all hold. An empty task_id is the cluster's
    own group of plain workers."""

    worker_id: str
    task_id: str = ""
    incarnation: str = ""
    hostname: str = ""
    port: int = 0
    gpu_count: int = 0
    memory_bytes: int = 0
    agent_id: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerSpec(WorkerFacts):
    """What a worker says of itself when it registers."""

    rank: int | None = None

    def __post_init__(self) -> None:
        check_name("worker_id", self.worker_id)
        for kind, value in (("task_id", self.task_id), ("incarnation", self.incarnation), ("agent_id", self.agent_id)):
            if value:
                check_name(kind, value)
        if self.rank is not None:
            check_count("rank", self.rank)
        _check_host(self.hostname, self.port)
        check_count("gpu_count", self.gpu_count)
        check_count("memory_bytes", self.memory_bytes)
        check_metadata(self.metadata)


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentFacts:
    """What an agent's own words, the event of its joining and its record all hold. `launcher` is who started it;
    `checkpoints` is where tasks save unless they name a place, the same word on hosts that share it, and empty when it
    does not say; `task_id` is the one task that it was started for, and empty when it takes any."""

    agent_id: str
    incarnation: str
    hostname: str
    address: str
    slots: int
    gpu_count: int = 0
    memory_bytes: int = 0
    version: str = ""
    launcher: str = "local"
    checkpoints: str = ""
    task_id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSpec(AgentFacts):
    """What an agent says of its host when it attaches."""

    def __post_init__(self) -> None:
        check_name("launcher", self.launcher)
        check_text("checkpoints", self.checkpoints, 4096)
        check_name("agent_id", self.agent_id)
        check_name("incarnation", self.incarnation)
        if self.task_id:
            check_name("task_id", self.task_id)
        _check_host(self.hostname, 0)
        for name, value in (("gpu_count", self.gpu_count), ("memory_bytes", self.memory_bytes)):
            check_count(name, value)
        if self.slots < 1:
            raise InvalidArgument(f"agent {self.agent_id}: slots is {self.slots}, an agent offers at least 1")


def check_count(name: str, value: int) -> int:
    """Returns `value` when it is 0 or more."""
    if value < 0:
        raise InvalidArgument(f"{name} is {value}, it must be 0 or more")
    return value


def _check_host(hostname: str, port: int) -> None:
    if len(hostname) > 255:
        raise InvalidArgument(f"hostname has {len(hostname)} characters, 255 are allowed")
    if not 0 <= port <= 65535:
        raise InvalidArgument(f"port is {port}, it must be between 0 and 65535")


def check_metadata(metadata: Mapping[str, str]) -> Mapping[str, str]:
    """Returns it when it is small enough to be kept and sent around."""
    size = sum(len(key) + len(value) for key, value in metadata.items())
    if size > _MAX_METADATA_BYTES:
        raise InvalidArgument(f"metadata has {size} characters, {_MAX_METADATA_BYTES} are allowed")
    return metadata
