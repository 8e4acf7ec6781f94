"""What a rank says, as bytes. What a thousand of them say at once, an arrival or a beat and nothing else, is known by
its first bytes; and what they say alike, by the bytes that are left without each one's own.
"""

from functools import lru_cache

from google.protobuf.message import DecodeError

from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk

__all__ = ["OwnWords", "lone_arrival", "lone_beat", "read_terms"]

_FIELDS = rk.RankWords.DESCRIPTOR.fields_by_name
_TAG = _FIELDS["arrivals"].number << 3 | 2
_BEAT = _FIELDS["beat"].number << 3 | 2
_MORE = 0x80  # in the first byte of a length: there is a second one


def lone_arrival(words: bytes) -> pb.BarrierRequest | None:
    """The arrival, if these RankWords are one arrival and nothing else. None also for bytes that are no RankWords, and
    for an arrival of more than 16 KB."""
    start = _start_of_arrival(words)
    if not start:
        return None
    try:
        return pb.BarrierRequest.FromString(words[start:])
    except DecodeError:
        return None


def _start_of_arrival(words: bytes) -> int:
    """0 if these are no RankWords with a lone arrival."""
    if len(words) < 3 or words[0] != _TAG:
        return 0
    length, start = words[1], 2
    if length & _MORE:
        length, start = length - _MORE | words[2] << 7, 3
    return start if start + length == len(words) else 0


class OwnWords:
    """What is a rank's own in all of its arrivals: its name and its incarnation, as the bytes of those fields."""

    __slots__ = ("_cut", "_head", "_incarnation", "_length", "_name")

    def __init__(self, worker_id: str, incarnation: str) -> None:
        self._name = pb.BarrierRequest(worker_id=worker_id).SerializeToString()
        self._incarnation = pb.BarrierRequest(incarnation=incarnation).SerializeToString()
        # Of the last arrival: its length, all until its name ends, and where its incarnation begins.
        self._length, self._head, self._cut = 0, b"", 0

    def taken_from(self, words: bytes) -> bytes | None:
        """The rest of a lone arrival of this rank, for `read_terms`: a thousand who meet say it alike. None if these
        words are anything else, or not in the order in which protobuf writes them."""
        is_like_last = len(words) == self._length and words.startswith(self._head)
        if not (is_like_last and words.startswith(self._incarnation, self._cut)) and not self._look_into(words):
            return None
        return words[len(self._head) : self._cut] + words[self._cut + len(self._incarnation) :]

    def _look_into(self, words: bytes) -> bool:
        start = _start_of_arrival(words)
        if not start or not words.startswith(self._name, start):
            return False
        start += len(self._name)
        cut = words.find(self._incarnation, start)
        if cut < 0:
            return False
        self._length, self._head, self._cut = len(words), words[:start], cut
        return True


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
    """What arrivals have in common: one message for all who say the same, not to be changed. Raises ValueError if it
    cannot be read, or names one of them."""
    try:
        terms = pb.BarrierRequest.FromString(alike)
    except DecodeError:
        raise ValueError("what is alike cannot be read") from None
    if terms.worker_id or terms.incarnation:
        raise ValueError("what is alike names a rank")
    return terms
