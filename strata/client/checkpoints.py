"""What people tell the coordinator of a checkpoint; its ranks speak for themselves (strata.worker.commit)."""

from strata.client.channel import Channel
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub

__all__ = ["report_check"]

_MAX_DAMAGE = 500  # characters


def report_check(channel: Channel, checkpoint_id: str, storage_path: str, damage: str) -> bool:
    """Somebody has read every byte of it. False when the cluster knows no such checkpoint."""
    request = ct.CheckpointCheck(checkpoint_id=checkpoint_id, storage_path=storage_path, damage=damage[:_MAX_DAMAGE])
    reply: ct.CheckAck = channel.call(channel.stub(ControlStub).ReportCheck, request)
    return reply.known
