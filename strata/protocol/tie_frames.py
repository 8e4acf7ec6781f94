"""What an agent's stream carries of its ranks, as bytes. Most of it is the same for all of them, and to build the
messages around that costs more than what is each one's own. It is what protobuf would write, byte for byte.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache

from google.protobuf.message import Message

from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = [
    "beat_words",
    "begun_releases",
    "first_order_part",
    "heard_part",
    "news_frame",
    "news_to_all",
    "order_part",
    "release_news",
    "releases_alike",
    "request_part",
    "ties_message",
    "written_frame",
]


def _tag(message: type[Message], name: str, wire_type: int = 2) -> bytes:
    return bytes([message.DESCRIPTOR.fields_by_name[name].number << 3 | wire_type])


_TIES = _tag(ag.CoordinatorMessage, "ties")
_FRAME = _tag(ag.TieFrames, "frames")
_TIE = _tag(ag.TieFrame, "tie", 0)
_PAYLOAD = _tag(ag.TieFrame, "payload")
_RELEASES = _tag(ag.TieFrame, "releases")
_ALIKE = _tag(ag.Releases, "alike")
_FIRST_ORDER = _tag(ag.Releases, "first_order", 0)
_RESPONSE = _tag(rk.BarrierResult, "response")
_ORDER = _tag(pb.BarrierResponse, "arrival_order", 0)
_RESULT = _tag(rk.RankNews, "result")
_REQUEST = _tag(rk.BarrierResult, "request_id")
_BEAT = _tag(rk.RankWords, "beat")
_STATUS = _tag(pb.HeartbeatRequest, "status")


def ties_message(frames: Iterable[bytes]) -> bytes:
    """A CoordinatorMessage with these frames, in order."""
    return _field(_TIES, b"".join(frames))


def news_frame(tie: int, payload: bytes) -> bytes:
    """A frame with RankNews for one rank."""
    return _field(_FRAME, _TIE + _varint(tie) + _field(_PAYLOAD, payload))


def news_to_all(ties: Sequence[int], alike: bytes, own: Sequence[bytes] = ()) -> bytes:
    """A frame with RankNews for several: what is alike, and behind it the rest of each one's."""
    return written_frame(ag.TieFrame(news=ag.News(ties=ties, alike=alike, own=own)))


@lru_cache(maxsize=1024)
def heard_part(sequence: int) -> bytes:
    """The rest of the answer to a beat, behind what all are told. Thousands of ranks count theirs alike."""
    return rk.RankNews(heard=sequence).SerializeToString()


def request_part(request_id: str) -> bytes:
    """The rest of how a barrier ended, behind what all who waited there are told."""
    return _field(_RESULT, _field(_REQUEST, request_id.encode()))


def beat_words(status: bytes, sequence: int) -> bytes:
    """RankWords with the beat of one rank, as it would have said it itself; of a status as bytes, good or not."""
    return _field(_BEAT, _field(_STATUS, status)) + rk.RankWords(sequence=sequence).SerializeToString()


def release_news(response: bytes) -> bytes:
    """RankNews of a release that is written, without the request and the place."""
    return _field(_RESULT, _field(_RESPONSE, response))


def releases_alike(response: bytes) -> bytes:
    """Releases with nothing but this one."""
    return _field(_ALIKE, response)


def begun_releases(releases: bytes, missing: int) -> bytes:
    """A CoordinatorMessage with these Releases, of which the last so many bytes are missing: `first_order_part`."""
    size = len(releases) + missing
    inner = _RELEASES + _varint(size)
    frame = _FRAME + _varint(len(inner) + size) + inner
    return _TIES + _varint(len(frame) + size) + frame + releases


@lru_cache(maxsize=1 << 14)
def first_order_part(place: int) -> bytes:
    """The rest of Releases: the place of the first rank."""
    return _FIRST_ORDER + _varint(place)


@lru_cache(maxsize=1 << 14)
def order_part(place: int) -> bytes:
    """The rest of a rank's RankNews of a release, behind what all are told: its place."""
    return _field(_RESULT, _field(_RESPONSE, _ORDER + _varint(place)))


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
