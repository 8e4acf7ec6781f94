"""Which part of the data this rank reads: lanes by rank, datasets by their id at the coordinator."""

from strata.client.channel import Channel, known_token
from strata.client.datasets import DatasetsClient
from strata.data.plan import DatasetSource, StaticPlan
from strata.errors import StrataError
from strata.worker.environment import Place

__all__ = ["WorkerPlan"]


class WorkerPlan(StaticPlan):
    """Implements strata.data's PlanSource. Lanes never move under a running process: when membership changes, the whole
    gang starts anew with the same ranks."""

    def __init__(self, place: Place) -> None:
        super().__init__(place.rank, place.world_size)
        self._place = place

    def resolve(self, dataset: str) -> DatasetSource | None:
        """The task's own dataset is known from the start; for another the coordinator is asked, if there is one."""
        if dataset == self._place.dataset_id and self._place.dataset is not None:
            known = self._place.dataset
            return DatasetSource(
                path=known["path"], format=known["format"], shuffle=known["shuffle"], seed=known["seed"]
            )
        if not _could_be_id(dataset):
            return None
        settings = self._place.settings
        try:
            with Channel(settings.coordinator_addr, token=known_token(settings), patience_s=0.0) as channel:
                spec = DatasetsClient(channel).find(dataset)
        except StrataError:
            return None
        return DatasetSource(path=spec.path, format=spec.format, shuffle=spec.shuffle, seed=spec.seed)


def _could_be_id(text: str) -> bool:
    return bool(text) and not any(letter in text for letter in "/*?[")
