"""The relay between ranks and the agent's stream, with real sockets: it carries bytes, holds ranks while there is no
coordinator, and lets go of them when it is lost.
"""

import asyncio
import stat
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import grpc
import pytest

from strata.agent.relay import Relay
from strata.client.client_stream import ClientStream
from strata.client.stream import UNIX, open_stream
from strata.errors import CoordinatorUnavailable
from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.trust.access import OPEN
from tests.support.stranger import Stranger, needs_root


class Host:
    def __init__(self, relay: Relay, path: Path) -> None:
        self.relay = relay
        self.path = path
        self.said: asyncio.Queue[ag.AgentMessage] = asyncio.Queue()

    async def rank(self) -> tuple[ClientStream, "asyncio.Queue[bytes]"]:
        heard: asyncio.Queue[bytes] = asyncio.Queue()
        stream = await open_stream(f"{UNIX}{self.path}", "/strata.ranks.Ranks/Tie", OPEN, heard.put_nowait)
        return stream, heard

    async def next(self) -> list[tuple[int, bytes, bool]]:
        message = await asyncio.wait_for(self.said.get(), 20)
        return [(frame.tie, frame.payload, frame.ended) for frame in message.ties.frames]


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[Host]:
    folder = tmp_path / ("long" * 40)  # a socket's name has room for 107 bytes
    folder.mkdir()
    relay = Relay()
    await relay.start(folder / "ranks.sock")
    yield Host(relay, folder / "ranks.sock")
    await relay.stop()


async def test_only_its_own_user_may_connect(host: Host) -> None:
    assert stat.S_IMODE(host.path.stat().st_mode) == 0o600


@needs_root
async def test_another_user_is_turned_away_by_the_file_and_by_the_kernel_s_word() -> None:
    with tempfile.TemporaryDirectory() as folder, Stranger() as stranger:
        relay, path = Relay(), Path(folder) / "ranks.sock"
        path.parent.chmod(0o755)
        said: list[ag.AgentMessage] = []
        relay.attach(said.append)
        await relay.start(path)

        def call() -> str:
            return stranger.grpc(f"{UNIX}{path}", "/strata.ranks.Ranks/Tie", b"hello")

        assert await asyncio.to_thread(call) == "UNAVAILABLE"
        path.chmod(0o666)  # as if the file did not keep anybody out
        assert await asyncio.to_thread(call) == "UNAUTHENTICATED"
        await relay.stop()
        assert not said


async def test_a_rank_is_held_until_there_is_a_coordinator_and_then_carried(host: Host) -> None:
    stream, heard = await host.rank()
    stream.send(b"hello")
    host.relay.attach(host.said.put_nowait)
    assert await host.next() == [(1, b"hello", False)]
    host.relay.on_frames(
        ag.TieFrames(frames=[ag.TieFrame(tie=1, payload=b"welcome"), ag.TieFrame(tie=9, payload=b"x")])
    )
    assert await asyncio.wait_for(heard.get(), 20) == b"welcome"
    stream.abort()
    assert await host.next() == [(1, b"", True)]


async def test_a_refusal_reaches_the_rank_as_the_end_of_its_stream(host: Host) -> None:
    host.relay.attach(host.said.put_nowait)
    stream, _ = await host.rank()
    stream.send(b"hello")
    await host.next()
    end = ag.TieFrame(tie=1, ended=True, error_code="fenced", error_message="it is over")
    host.relay.on_frames(ag.TieFrames(frames=[end]))
    status = await asyncio.wait_for(stream.ended, 20)
    assert (status.code(), status.details()) == (grpc.StatusCode.FAILED_PRECONDITION, "it is over")
    stream.abort()


async def test_a_lost_coordinator_lets_go_of_every_rank(host: Host) -> None:
    host.relay.attach(host.said.put_nowait)
    stream, _ = await host.rank()
    stream.send(b"hello")
    await host.next()
    host.relay.detach()
    assert (await asyncio.wait_for(stream.ended, 20)).code() is grpc.StatusCode.UNAVAILABLE
    stream.abort()
    assert host.said.empty()


def _arrival(rank: int, **values: Any) -> bytes:
    request = {"worker_id": f"w{rank}", "incarnation": f"i{rank}", "barrier_id": "b", "request_id": "r"}
    return rk.RankWords(arrivals=[pb.BarrierRequest(**(request | values))]).SerializeToString()


async def test_who_arrives_under_another_name_is_passed_on_under_that_name(host: Host) -> None:
    """What was said of a company before is not said of somebody else; whether it is true, the coordinator knows."""
    host.relay.attach(host.said.put_nowait, takes_crowds=True)
    stream, _ = await host.rank()
    for rank in (0, 0, 1, 1, 0):
        stream.send(_arrival(rank))
        (frame,) = (await asyncio.wait_for(host.said.get(), 20)).ties.frames
        company = ag.Company.FromString(frame.arrivals.company)
        assert company == ag.Company(ties=[1], worker_ids=[f"w{rank}"], incarnations=[f"i{rank}"])
    stream.abort()


@pytest.mark.parametrize("turns", [1, 2])
async def test_arrivals_of_one_turn_at_one_barrier_are_put_together(host: Host, turns: int) -> None:
    """In a second turn, too, when it is known what is a rank's own."""
    host.relay.attach(host.said.put_nowait, takes_crowds=True)
    ranks = [await host.rank() for _ in range(4)]
    for stream, _ in ranks:
        stream.send(b"hello")
        await host.next()
    for _ in range(turns - 1):
        for number, (stream, _) in enumerate(ranks):
            stream.send(_arrival(number))
            await asyncio.wait_for(host.said.get(), 20)
    beat = rk.RankWords(beat=pb.HeartbeatRequest(), sequence=1).SerializeToString()
    said = [[_arrival(0, step=3)], [_arrival(1, step=3), beat], [_arrival(2, step=3) + beat], [_arrival(3, step=4)]]
    for (stream, _), payloads in zip(ranks, said, strict=True):
        for payload in payloads:
            stream.send(payload)
    frames = (await asyncio.wait_for(host.said.get(), 20)).ties.frames
    found = [
        (
            frame.payload,
            frame.tie,
            pb.BarrierRequest.FromString(frame.arrivals.alike).step,
            list(ag.Company.FromString(frame.arrivals.company).ties),
        )
        for frame in frames
    ]
    assert found == [
        (b"", 0, 3, [1, 2]),
        (beat, 2, 0, []),
        (_arrival(2, step=3) + beat, 3, 0, []),
        (b"", 0, 4, [4]),
    ]
    company = ag.Company.FromString(frames[0].arrivals.company)
    assert (list(company.worker_ids), list(company.incarnations)) == (["w0", "w1"], ["i0", "i1"])
    assert frames[0].arrivals.alike == pb.BarrierRequest(barrier_id="b", step=3, request_id="r").SerializeToString()
    for stream, _ in ranks:
        stream.abort()


async def test_arrivals_are_told_rank_by_rank_if_they_differ_or_the_coordinator_is_older(host: Host) -> None:
    for takes_crowds, requests, number in ((True, ("r0", "r1"), 2), (False, ("r", "r"), 2), (True, ("r", "r"), 1)):
        host.relay.attach(host.said.put_nowait, takes_crowds=takes_crowds)
        ranks = await _two_ranks(host)
        for rank, ((stream, _), request_id) in enumerate(zip(ranks, requests, strict=True)):
            stream.send(_arrival(rank, request_id=request_id))
        frames = list((await asyncio.wait_for(host.said.get(), 20)).ties.frames)
        assert len(frames) == number
        assert all(bool(frame.payload) is not takes_crowds for frame in frames)
        host.relay.detach()
        for stream, _ in ranks:
            stream.abort()


async def test_a_rank_whose_arrival_cannot_be_read_is_passed_on_alone(host: Host) -> None:
    """Between what is its own, anything may stand. In a frame of arrivals the coordinator would blame the agent."""
    host.relay.attach(host.said.put_nowait, takes_crowds=True)
    (stream, _), (other, _) = await _two_ranks(host)
    stream.send(_arrival(0))
    await host.said.get()
    own = pb.BarrierRequest(worker_id="w0", incarnation="i0").SerializeToString()
    for rest in (b"\xff\xff", pb.BarrierRequest(worker_id="w1").SerializeToString() + b"\xff"):
        words = b"\x22" + bytes([len(own + rest)]) + own + rest
        stream.send(words)
        assert await host.next() == [(1, words, False)]
    stream.abort()
    other.abort()


async def test_a_release_of_several_is_each_rank_s_own(host: Host) -> None:
    host.relay.attach(host.said.put_nowait)
    ranks = [await host.rank() for _ in range(2)]
    for stream, _ in ranks:
        stream.send(b"hello")
        await host.next()
    alike = pb.BarrierResponse(released=True, barrier_id="b", participants=8, generation=3, absent=("x",))
    releases = ag.Releases(alike=alike, ties=(1, 9, 2), request_id="r", first_order=5)
    host.relay.on_frames(ag.TieFrames(frames=[ag.TieFrame(releases=releases)]))
    for tie, (stream, heard) in enumerate(ranks, start=1):
        news = rk.RankNews.FromString(await asyncio.wait_for(heard.get(), 20))
        response = pb.BarrierResponse(arrival_order={1: 5, 2: 7}[tie])
        response.MergeFrom(alike)
        assert news == rk.RankNews(result=rk.BarrierResult(request_id="r", response=response))
        stream.abort()


async def test_without_an_agent_nobody_answers(tmp_path: Path) -> None:
    with pytest.raises(CoordinatorUnavailable, match="nobody answers"):
        await open_stream(f"{UNIX}{tmp_path}/none.sock", "/x", OPEN, lambda payload: None)


def _beat(sequence: int, **status: Any) -> bytes:
    beat = pb.HeartbeatRequest(status=pb.WorkerStatus(state=pb.WorkerStatus.TRAINING, **status))
    return rk.RankWords(beat=beat, sequence=sequence).SerializeToString()


async def _beats(host: Host) -> list[tuple[list[int], list[int]]]:
    frames = (await asyncio.wait_for(host.said.get(), 20)).ties.frames
    return [(list(frame.beats.ties), list(frame.beats.sequences)) for frame in frames]


async def _two_ranks(host: Host) -> list[tuple[ClientStream, "asyncio.Queue[bytes]"]]:
    ranks = [await host.rank() for _ in range(2)]
    for stream, _ in ranks:
        stream.send(b"hello")
        await host.next()
    return ranks


async def test_beats_that_say_nothing_new_wait_for_each_other(host: Host) -> None:
    host.relay.attach(host.said.put_nowait, takes_beats=True)
    ranks = await _two_ranks(host)
    for stream, _ in ranks:  # the first ones are new, and go at once
        stream.send(_beat(1, current_step=5))
        await _beats(host)
    for turn in (2, 3):
        for rank, (stream, _) in enumerate(ranks):
            stream.send(_beat(turn + rank, current_step=turn))
        assert await _beats(host) == [([1, 2], [turn, turn + 1])]
    ranks[0][0].send(_beat(8, current_step=8))
    ranks[1][0].send(_beat(9, current_step=8, asked_to_stop=True))  # takes along what waits
    assert await _beats(host) == [([1], [8]), ([2], [9])]
    for stream, _ in ranks:
        stream.abort()


async def test_a_rank_s_last_beat_goes_before_its_end(host: Host) -> None:
    host.relay.attach(host.said.put_nowait, takes_beats=True)
    (first, _), (second, _) = await _two_ranks(host)
    first.send(_beat(1))
    await _beats(host)
    first.send(_beat(2))
    await first.leave(20)
    frames = list((await asyncio.wait_for(host.said.get(), 20)).ties.frames)
    if not frames[-1].ended:  # the moment was over before the end was seen
        frames += (await asyncio.wait_for(host.said.get(), 20)).ties.frames
    assert [(list(frame.beats.sequences), frame.tie, frame.ended) for frame in frames] == [
        ([2], 0, False),
        ([], 1, True),
    ]
    second.abort()


async def test_what_waits_is_lost_with_the_coordinator_and_an_older_one_hears_each_rank(host: Host) -> None:
    host.relay.attach(host.said.put_nowait, takes_beats=True)
    (first, _), (second, _) = await _two_ranks(host)
    first.send(_beat(1))
    await _beats(host)
    first.send(_beat(2))
    second.send(b"more")
    await host.said.get()
    host.relay.detach()
    while not host.said.empty():  # what left before that
        host.said.get_nowait()
    host.relay.attach(host.said.put_nowait)
    stream, _ = await host.rank()
    stream.send(_beat(7))
    assert await host.next() == [(3, _beat(7), False)]
    for each in (first, second, stream):
        each.abort()


async def test_news_for_several_is_each_rank_s_own(host: Host) -> None:
    host.relay.attach(host.said.put_nowait)
    ranks = await _two_ranks(host)
    alike, own = b"alike", (b"-two", b"-nine", b"-one")
    for frame in (ag.News(ties=(2, 9, 1), alike=alike, own=own), ag.News(ties=(1, 2), alike=alike)):
        host.relay.on_frames(ag.TieFrames(frames=[ag.TieFrame(news=frame)]))
    for (stream, heard), rest in zip(ranks, (b"-one", b"-two"), strict=True):
        assert [await asyncio.wait_for(heard.get(), 20) for _ in range(2)] == [alike + rest, alike]
        stream.abort()
