"""Which rank a CheckpointManager saves for when the caller names none. The worker runtime, one layer up, knows it."""

import os
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Literal, Protocol

from strata.ambient import ambient
from strata.checkpoint.commit import CommitCoordinator
from strata.checkpoint.fork import Forking
from strata.checkpoint.options import CheckpointOptions
from strata.checkpoint.spreading import Exchange
from strata.errors import InvalidConfig
from strata.storage.base import ObjectStore

__all__ = ["Owner", "find_owner", "owned"]


class Owner(Protocol):
    """One rank of a job. Implemented by whoever knows the job; a manager asks it once, when it is made."""

    @property
    def place(self) -> tuple[int, int, str | None, str | None]:
        """Rank, world size, worker id and task id."""
        ...

    @property
    def forking(self) -> Forking | None:
        """How its task was forked; None for one that was not."""
        ...

    @property
    def scrub_mb_s(self) -> float:
        """How fast the newest checkpoint is read back behind the training; 0: never."""
        ...

    def decider(self, store: ObjectStore, deadline_s: float) -> CommitCoordinator | None:
        """Who decides that a checkpoint of all ranks is complete; None for a rank that is alone."""
        ...

    def agree(self, step: int) -> Sequence[int]:
        """Tells the step that this rank can load (-1: none) to all ranks and returns everybody's. Collective."""
        ...

    @property
    def exchange(self) -> Exchange | None:
        """How the ranks talk to each other; None where they cannot, or there is only one."""
        ...

    def section(self, name: Literal["checkpoint", "recovery"]) -> AbstractContextManager[object]:
        """Inside, the training thread waits for a save or a load: its worker is shown as Checkpointing or
        Recovering."""
        ...

    def before_vote(self, step: int) -> None:
        """Called on the saving thread when the step's bytes are durable and nobody can count on them yet: what belongs
        to the step beside its bytes (its metrics) must be safe when this returns. Never raises."""
        ...


def owned(owner: Owner | None, options: CheckpointOptions, *, given: bool) -> CheckpointOptions:
    """The options with what the owner adds to them; what was given by hand wins."""
    if owner is None:
        return options
    added: CheckpointOptions = {"before_vote": owner.before_vote, "scrub_mb_s": owner.scrub_mb_s}
    if not given:
        rank, world_size, worker_id, task_id = owner.place
        added |= {"rank": rank, "world_size": world_size, "worker_id": worker_id, "task_id": task_id}
    return {**added, **options}


def find_owner(*, is_alone: bool) -> Owner | None:
    """The rank of this process, or None outside of a job. `is_alone` means that the manager was given its ranks by
    hand, or that it needs no others."""
    if ambient.owner is not None:
        owner: Owner = ambient.owner()
        return owner
    task = os.environ.get("STRATA_TASK_ID")
    if task and not is_alone and os.environ.get("STRATA_WORLD_SIZE", "1") != "1":
        raise InvalidConfig(
            f"this process is one of several ranks of task {task}, and has not joined it",
            hint="Call strata.init() first; or pass rank=0, world_size=1 to save alone.",
        )
    return None
