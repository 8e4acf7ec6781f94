"""A rank of a forked task: with which checkpoint it begins, and which batches its loaders leave out."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from strata.ambient import ambient
from strata.types.forks import ForkedData
from strata.worker.environment import Place

if TYPE_CHECKING:
    from strata.checkpoint.fork import Forking

__all__ = ["changes_of", "forking_of"]


def forking_of(place: Place) -> "Forking | None":
    """Tells the loaders of this process, too. The n-th step after the checkpoint has trained on the n-th batch after
    its cursor."""
    fork = place.fork
    if fork is None:
        return None
    from strata.checkpoint.fork import Forking  # only where there is a fork

    skip = tuple((first - fork.step - 1, last - fork.step - 1) for first, last in fork.skip)
    ambient.forked = ForkedData(name=place.task_id, skip=skip)
    return Forking(place.task_id, fork)


def changes_of(place: Place) -> Mapping[str, Any]:
    """What the fork was given anew: it wins over what the script says, or nothing would change."""
    return {} if place.fork is None else place.fork.changes
