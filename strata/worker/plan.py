"""Which part of the data this rank reads: lanes by rank, datasets by their id at the coordinator."""

from strata.client.channel import Channel
from strata.client.datasets import DatasetsClient
from strata.data.plan import DatasetSource, StaticPlan
from strata.errors import StrataError
from strata.trust.access import find_access
from strata.worker.environment import Place

__all__ = ["SharePlan", "WorkerPlan", "owners", "shares_of"]


class WorkerPlan(StaticPlan):
    """Implements strata.data's PlanSource. Lanes never move under a running process: when membership changes, the whole
    gang starts anew. The global batch is that of the declared number of workers, whatever the size of the world."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.rank, place.world_size, place.worker_count or None)
        self._place = place

    def resolve(self, dataset: str) -> DatasetSource | None:
        """The task's own dataset is known from the start; for another the coordinator is asked, if there is one."""
        if dataset == self._place.dataset_id and self._place.dataset is not None:
            known = self._place.dataset
            return DatasetSource(
                path=known["path"], format=known["format"], shuffle=known["shuffle"], seed=known["seed"]
            )
        if not dataset or any(letter in dataset for letter in "/*?["):  # no id, but a path or a pattern
            return None
        settings = self._place.settings
        try:
            with Channel(settings.coordinator_addr, access=find_access(settings), patience_s=0.0) as channel:
                spec = DatasetsClient(channel).find(dataset)
        except StrataError:
            return None
        return DatasetSource(path=spec.path, format=spec.format, shuffle=spec.shuffle, seed=spec.seed)


class SharePlan(WorkerPlan):
    """Deals lanes in whole shares, one per declared worker, so that whatever is summed up share by share is the same at
    every size. `shares` are this rank's, by number."""

    def __init__(self, place: Place) -> None:
        super().__init__(place)
        self.shares = shares_of(place.rank, place.world_size, self.worker_count)
        self._of_lane: dict[int, dict[int, int]] = {}

    def plan(self, dataset: str, num_lanes: int) -> tuple[int, ...]:
        return tuple(sorted(lane for lane, share in self.share_of_lane(num_lanes).items() if share in self.shares))

    def share_of_lane(self, num_lanes: int) -> dict[int, int]:
        """A share is what the rank of its number reads when all workers are there."""
        if num_lanes not in self._of_lane:
            read = [StaticPlan(share, self.worker_count).plan("", num_lanes) for share in range(self.worker_count)]
            self._of_lane[num_lanes] = {lane: share for share, lanes in enumerate(read) for lane in lanes}
        return self._of_lane[num_lanes]


def shares_of(rank: int, world_size: int, worker_count: int) -> tuple[int, ...]:
    """Neighbours stay together: a rank's shares are a run of numbers."""
    return tuple(range(rank * worker_count // world_size, (rank + 1) * worker_count // world_size))


def owners(world_size: int, worker_count: int) -> list[int]:
    """The rank of each share."""
    return [rank for rank in range(world_size) for _ in shares_of(rank, world_size, worker_count)]
