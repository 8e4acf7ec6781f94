"""Datasets at the coordinator: registering one, and finding it again."""

from strata.client.channel import Channel
from strata.client.tasks import StateView, fetch_state
from strata.errors import UnknownDataset
from strata.protocol import convert
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.datasets import DataFile, DatasetSpec

__all__ = ["DatasetsClient"]


class DatasetsClient:
    """Dataset calls; the same registration again changes nothing."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(CoordinatorStub)

    def register(self, spec: DatasetSpec) -> int:
        """Returns the number of shards."""
        reply: pb.DatasetAck = self._channel.call(self._stub.RegisterDataset, convert.to_dataset_info(spec))
        return reply.total_shards

    def find(self, dataset_id: str) -> DatasetSpec:
        state: StateView = fetch_state(self._channel)
        for values in state.datasets:
            if values["dataset_id"] == dataset_id:
                files = tuple(DataFile(**file) for file in values["files"])
                kept = {name: values[name] for name in DatasetSpec.__slots__ if name != "files"}
                return DatasetSpec(**kept, files=files)
        raise UnknownDataset(f"no dataset {dataset_id!r} is registered")
