"""The code of tasks: sent to the coordinator once, and fetched from there by the agents that need it."""

from strata.client.channel import Channel
from strata.errors import InvalidArgument
from strata.protocol.generated import control_pb2 as ct
from strata.protocol.generated.control_pb2_grpc import ControlStub
from strata.types.code import MAX_ARCHIVE_BYTES, PART_BYTES

__all__ = ["CodeClient"]


class CodeClient:
    """Archives in parts. What is there already is not sent again."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._stub = channel.stub(ControlStub)

    def put(self, digest: str, data: bytes) -> bool:
        """Returns whether anything had to be sent."""
        if self._put(ct.CodePart(digest=digest, total=len(data))):
            return False
        for offset in range(0, len(data), PART_BYTES):
            part = data[offset : offset + PART_BYTES]
            if self._put(ct.CodePart(digest=digest, total=len(data), offset=offset, data=part)):
                return True
        raise InvalidArgument(f"the coordinator has not taken code {digest}", hint="Try again.")

    def _put(self, part: ct.CodePart) -> bool:
        """Whether all of it is there."""
        ack: ct.CodeAck = self._channel.call(self._stub.PutCode, part, timeout_s=60.0)
        return ack.complete

    def get(self, digest: str) -> bytes:
        found = bytearray()
        while True:
            part: ct.CodePart = self._channel.call(
                self._stub.GetCode, ct.CodeRef(digest=digest, offset=len(found)), timeout_s=60.0
            )
            found += part.data
            if len(found) >= part.total or not part.data or len(found) > MAX_ARCHIVE_BYTES:
                return bytes(found)
