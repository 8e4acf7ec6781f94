"""What an agent's stream carries down to its ranks, as bytes. Most of it is the same for all of them, and to build the
messages around that costs more than what is each one's own. It is what protobuf would write, byte for byte.
"""

from collections.abc import Iterable

from google.protobuf.message import Message

from strata.protocol.generated import agents_pb2 as ag

__all__ = ["alike_part", "news_frame", "releases_frame", "ties_message", "written_frame"]


def _tag(message: type[Message], name: str, wire_type: int = 2) -> bytes:
    return bytes([message.DESCRIPTOR.fields_by_name[name].number << 3 | wire_type])


_TIES = _tag(ag.CoordinatorMessage, "ties")
_FRAME = _tag(ag.TieFrames, "frames")
_TIE = _tag(ag.TieFrame, "tie", 0)
_PAYLOAD = _tag(ag.TieFrame, "payload")
_RELEASES = _tag(ag.TieFrame, "releases")
_ALIKE = _tag(ag.Releases, "alike")


def ties_message(frames: Iterable[bytes]) -> bytes:
    """A CoordinatorMessage with these frames, in order."""
    return _field(_TIES, b"".join(frames))


def news_frame(tie: int, payload: bytes) -> bytes:
    """A frame with RankNews for one rank."""
    return _field(_FRAME, _TIE + _varint(tie) + _field(_PAYLOAD, payload))


def releases_frame(*parts: bytes) -> bytes:
    """A frame with Releases that were written in parts: one part of a message and then another are the whole."""
    return _field(_FRAME, _field(_RELEASES, b"".join(parts)))


def alike_part(response: Message) -> bytes:
    """Releases of which only that much is known: what all are told."""
    return _field(_ALIKE, response.SerializeToString())


def written_frame(frame: ag.TieFrame) -> bytes:
    return _field(_FRAME, frame.SerializeToString())


def _field(tag: bytes, data: bytes) -> bytes:
    return tag + _varint(len(data)) + data


def _varint(number: int) -> bytes:
    if number < 0x80:
        return number.to_bytes(1, "big")
    if number < 0x4000:
        return bytes((number & 0x7F | 0x80, number >> 7))
    return bytes((number & 0x7F | 0x80,)) + _varint(number >> 7)
