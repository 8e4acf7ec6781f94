"""Datasets at the coordinator: registering one, and finding it again."""

import json

from strata.client.channel import Channel
from strata.client.records import read_list
from strata.cluster.datasets import Dataset
from strata.protocol import convert
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.protocol.generated.coordinator_pb2_grpc import CoordinatorStub
from strata.types.datasets import DatasetSpec
from strata.types.plain import from_plain

__all__ = ["DatasetsClient"]


class DatasetsClient:
    """Dataset calls; the same registration again changes nothing."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(CoordinatorStub)
        self._records = channel.stub(ControlStub)

    def register(self, spec: DatasetSpec) -> int:
        """Returns the number of shards."""
        reply: pb.DatasetAck = self._channel.call(self._stub.RegisterDataset, convert.to_dataset_info(spec))
        return reply.total_shards

    def find(self, dataset_id: str) -> DatasetSpec:
        reply: ct.RecordReply = self._channel.call(self._records.GetDataset, ct.DatasetRef(dataset_id=dataset_id))
        return from_plain(Dataset, json.loads(reply.record_json)).spec

    def list(self) -> list[Dataset]:
        return read_list(Dataset, self._channel.call(self._records.ListDatasets, ct.ListRequest()))
