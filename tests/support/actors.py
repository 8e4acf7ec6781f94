"""Who takes part in a random schedule: the kind of cluster it is about, and one start of a worker."""

from dataclasses import dataclass

from strata.coordinator.state.attempts import SaveAttempt
from strata.types.barriers import BarrierPolicy
from tests.support.simulation import Call

__all__ = ["Mode", "Process"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Mode:
    """What kind of cluster a schedule is about."""

    policy: BarrierPolicy
    sized: bool  # a declared task, or the elastic group
    started: bool  # its ranks are started, attempt by attempt; those of an old attempt may still be about
    plain: bool  # clients of the original proto: no incarnation, no generation, no request ids
    reuse: bool  # one barrier round after round, or a new step each time


@dataclass(slots=True, eq=False)
class Process:
    """One start of a worker. It knows what the SDK knows: its id, its incarnation, the generation it was told."""

    worker_id: str
    incarnation: str
    generation: int = 0
    rank: int = -1
    registered: bool = False
    paused: bool = False
    stale: bool = False  # its generation is old: it asks for the new one before it goes on
    dead: bool = False
    arrivals: int = 0
    releases: int = 0
    told: tuple[int, int] = (0, 0)  # the newest release that it heard of before it was durable: term, record
    call: Call | None = None
    attempt: SaveAttempt | None = None
