"""Hosts: which there are, and which of them go away."""

from strata.client.channel import Channel
from strata.client.records import RecordsClient
from strata.cluster.members import Agent
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub

__all__ = ["HostsClient"]


class HostsClient:
    """A host is named by its agent's id, or by its own name where it has one agent."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(ControlStub)

    def list(self) -> list[Agent]:
        return RecordsClient(self._channel).agents()

    def drain(self, host: str, reason: str = "", deadline: float | None = None) -> str:
        """What runs there saves and leaves before the deadline (Unix seconds). Returns the agent's id."""
        request = ct.DrainRequest(host=host, reason=reason, deadline=deadline)
        ack: ct.DrainAck = self._channel.call(self._stub.DrainAgent, request)
        return ack.agent_id

    def undrain(self, host: str) -> str:
        """The host stays after all."""
        ack: ct.DrainAck = self._channel.call(self._stub.DrainAgent, ct.DrainRequest(host=host, undo=True))
        return ack.agent_id
