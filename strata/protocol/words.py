"""What a rank says, as bytes. What a thousand of them say at once, an arrival or a beat and nothing else, is known by
its first bytes: to parse the message around an arrival costs more than the arrival.
"""

from functools import lru_cache

from google.protobuf.message import DecodeError

from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["lone_arrival", "lone_beat", "read_terms"]

_FIELDS = rk.RankWords.DESCRIPTOR.fields_by_name
_TAG = _FIELDS["arrivals"].number << 3 | 2
_BEAT = _FIELDS["beat"].number << 3 | 2
_MORE = 0x80  # in the first byte of a length: there is a second one


def lone_arrival(words: bytes) -> pb.BarrierRequest | None:
    """The arrival, if these RankWords are one arrival and nothing else. None also for bytes that are no RankWords, and
    for an arrival of more than 16 KB."""
    if len(words) < 3 or words[0] != _TAG:
        return None
    length, start = words[1], 2
    if length & _MORE:
        length, start = length - _MORE | words[2] << 7, 3
    if start + length != len(words):
        return None
    try:
        return pb.BarrierRequest.FromString(words[start:])
    except DecodeError:
        return None


def lone_beat(words: bytes) -> rk.RankWords | None:
    """These RankWords, if they are one beat about what the rank does, and nothing else. None also for bytes that are no
    RankWords."""
    if not words or words[0] != _BEAT:
        return None
    try:
        said = rk.RankWords.FromString(words)
    except DecodeError:
        return None
    more = said.HasField("hello") or said.arrivals or said.withdrawn or said.beat.HasField("resources")
    return None if more else said


@lru_cache(maxsize=16)
def read_terms(alike: bytes) -> pb.BarrierRequest:
    """What arrivals have in common, as agents pass it on: one message for all who say the same, not to be changed.
    Raises DecodeError."""
    return pb.BarrierRequest.FromString(alike)
