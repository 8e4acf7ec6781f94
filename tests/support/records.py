"""All records of a cluster at one moment: the first message of the coordinator's stream."""

import json
from typing import Any

from strata.client.channel import Channel
from strata.cluster.model import Cluster
from strata.cluster.snapshot import load_cluster
from strata.protocol.generated.control_pb2 import StateSnapshot, WatchRequest
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.trust.access import OPEN, Access

__all__ = ["first_snapshot", "seen_cluster"]


def first_snapshot(control: ControlStub) -> StateSnapshot:
    updates: Any = control.WatchState(WatchRequest(), timeout=20, wait_for_ready=True)
    snapshot: StateSnapshot = next(updates).snapshot
    updates.cancel()
    return snapshot


def seen_cluster(address: str, access: Access = OPEN) -> Cluster:
    cluster = Cluster()
    with Channel(address, access=access, patience_s=20.0) as channel:
        load_cluster(cluster, json.loads(first_snapshot(channel.stub(ControlStub)).records_json))
    return cluster
