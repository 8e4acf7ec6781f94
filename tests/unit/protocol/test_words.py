"""An arrival or a beat and nothing else is told from its first bytes, just when parsing the whole message says so."""

import random

import pytest
from google.protobuf.message import DecodeError

from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.words import OwnWords, lone_arrival, lone_beat, read_terms


def parsed(words: bytes) -> pb.BarrierRequest | None:
    try:
        message = rk.RankWords.FromString(words)
    except DecodeError:
        return None
    alone = len(message.arrivals) == 1 and len(message.ListFields()) == 1
    return message.arrivals[0] if alone else None


@pytest.mark.parametrize("size", [1, 50, 110, 120, 121, 127, 128, 300, 10_000])
def test_an_arrival_of_any_length(size: int) -> None:
    request = pb.BarrierRequest(worker_id="w" * size, barrier_id="b", step=2**40, request_id="r")
    assert lone_arrival(rk.RankWords(arrivals=[request]).SerializeToString()) == request


@pytest.mark.parametrize(
    "words",
    [
        rk.RankWords(),
        rk.RankWords(hello=rk.RankHello(worker_id="w"), arrivals=[pb.BarrierRequest(worker_id="w")]),
        rk.RankWords(beat=pb.HeartbeatRequest(worker_id="w"), sequence=3),
        rk.RankWords(arrivals=[pb.BarrierRequest(worker_id="w"), pb.BarrierRequest(worker_id="v")]),
        rk.RankWords(arrivals=[pb.BarrierRequest(worker_id="w")], withdrawn=["r"]),
        rk.RankWords(withdrawn=["r"]),
    ],
)
def test_whatever_else_is_said(words: rk.RankWords) -> None:
    assert lone_arrival(words.SerializeToString()) is None


def test_noise_is_never_taken_for_more_than_it_is() -> None:
    rng = random.Random(3)
    whole = rk.RankWords(arrivals=[pb.BarrierRequest(worker_id="w" * 130, barrier_id="b")]).SerializeToString()
    for _ in range(5_000):
        words = bytearray(whole[: rng.randrange(len(whole) + 1)] + rng.randbytes(rng.choice((0, 0, 2))))
        for _ in range(rng.randrange(3)):
            if words:
                words[rng.randrange(min(8, len(words)))] = rng.randrange(256)
        found = lone_arrival(bytes(words))
        assert found is None or found == parsed(bytes(words))


def test_a_beat_and_nothing_else() -> None:
    beat = rk.RankWords(beat=pb.HeartbeatRequest(worker_id="w", status=pb.WorkerStatus(current_step=4)), sequence=3)
    assert lone_beat(beat.SerializeToString()) == beat
    silent = rk.RankWords(beat=pb.HeartbeatRequest())
    assert lone_beat(silent.SerializeToString()) == silent


@pytest.mark.parametrize(
    "words",
    [
        rk.RankWords(),
        rk.RankWords(sequence=3),
        rk.RankWords(arrivals=[pb.BarrierRequest(worker_id="w")]),
        rk.RankWords(hello=rk.RankHello(worker_id="w"), beat=pb.HeartbeatRequest()),
        rk.RankWords(beat=pb.HeartbeatRequest(), arrivals=[pb.BarrierRequest(worker_id="w")]),
        rk.RankWords(beat=pb.HeartbeatRequest(), withdrawn=["r"]),
        rk.RankWords(beat=pb.HeartbeatRequest(resources=pb.ResourceUsage(cpu_percent=3))),
    ],
)
def test_what_is_more_than_a_beat(words: rk.RankWords) -> None:
    assert lone_beat(words.SerializeToString()) is None


def test_bytes_that_are_no_beat() -> None:
    whole = rk.RankWords(beat=pb.HeartbeatRequest(worker_id="w"), sequence=3).SerializeToString()
    assert lone_beat(whole[:3]) is None
    assert lone_beat(whole[:1] + b"\xff" + whole[2:]) is None
    assert lone_beat(rk.RankWords(beat=pb.HeartbeatRequest(worker_id="w")).SerializeToString()[:-1] + b"\xff") is None


OWN = OwnWords("w" * 130, "i")


@pytest.mark.parametrize("values", [{}, {"step": 2**40, "generation": 3, "timeout_ms": 5, "policy": 2}])
def test_what_is_left_without_a_rank_s_own_words_is_what_all_say(values: dict[str, int]) -> None:
    terms = pb.BarrierRequest(barrier_id="b" * 200, request_id="r", **values)  # type: ignore[arg-type]
    request = pb.BarrierRequest(worker_id="w" * 130, incarnation="i")
    request.MergeFrom(terms)
    taken = OWN.taken_from(rk.RankWords(arrivals=[request]).SerializeToString())
    assert taken == terms.SerializeToString()
    assert read_terms(taken) == terms


@pytest.mark.parametrize(
    "said",
    [
        pb.BarrierRequest(worker_id="v" * 130, incarnation="i", barrier_id="b"),
        pb.BarrierRequest(worker_id="w" * 130, incarnation="j", barrier_id="b"),
        pb.BarrierRequest(worker_id="w" * 130, barrier_id="b"),
        pb.BarrierRequest(worker_id="w" * 131, incarnation="i"),
    ],
)
def test_the_words_of_another_are_not_taken(said: pb.BarrierRequest) -> None:
    assert OWN.taken_from(rk.RankWords(arrivals=[said]).SerializeToString()) is None


def test_who_names_itself_twice_is_not_taken_for_everybody() -> None:
    own = pb.BarrierRequest(worker_id="w" * 130, incarnation="i").SerializeToString()
    body = own + pb.BarrierRequest(worker_id="v").SerializeToString()  # the last one counts, as protobuf reads it
    taken = OWN.taken_from(b"\x22" + bytes([len(body) & 0x7F | 0x80, len(body) >> 7]) + body)
    for names_one in (own, taken):
        with pytest.raises(ValueError, match="names a rank"):
            read_terms(names_one)


def test_what_is_no_message_is_not_taken_for_everybody() -> None:
    with pytest.raises(ValueError, match="cannot be read"):
        read_terms(b"\xff")


def terms_or_none(taken: bytes) -> pb.BarrierRequest | None:
    try:
        return read_terms(taken)
    except ValueError:
        return None


def test_noise_of_a_rank_is_never_taken_for_another_s() -> None:
    rng = random.Random(5)
    request = pb.BarrierRequest(worker_id="w" * 130, barrier_id="b", incarnation="i", request_id="r")
    whole = rk.RankWords(arrivals=[request]).SerializeToString()
    for _ in range(5_000):
        words = bytearray(whole)
        for _ in range(rng.randrange(4)):
            words[rng.randrange(len(words))] = rng.randrange(256)
        taken, read = OWN.taken_from(bytes(words)), parsed(bytes(words))
        if taken is not None and read is not None and (terms := terms_or_none(taken)) is not None:
            assert read.worker_id == "w" * 130
            read.ClearField("worker_id")
            read.ClearField("incarnation")
            assert terms == read
