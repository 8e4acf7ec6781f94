"""Beats of several ranks in one frame, and what several are told in one, against a real server in this process."""

import asyncio
from typing import Any

import grpc
import pytest

from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from tests.unit.coordinator.rpc.conftest import Cluster, heard, host_of, next_frame, together, words


def beats(*ranks: tuple[int, int, bytes], alike: bytes = b"") -> ag.AgentMessage:
    """Beats that an agent has put together: tie, sequence, what is the rank's own."""
    ties, sequences, own = zip(*ranks, strict=True)
    said = ag.Beats(ties=ties, sequences=sequences, own=own, alike=alike)
    return ag.AgentMessage(ties=ag.TieFrames(frames=[ag.TieFrame(beats=said)]))


def at(step: int) -> bytes:
    return pb.WorkerStatus(current_step=step).SerializeToString()


def told(frame: Any) -> dict[int, rk.RankNews]:
    """What several ranks are told by one frame."""
    news, own = frame.news, frame.news.own or [b""] * len(frame.news.ties)
    return {tie: rk.RankNews.FromString(news.alike + rest) for tie, rest in zip(news.ties, own, strict=True)}


TRAINING = pb.WorkerStatus(state=pb.WorkerStatus.TRAINING).SerializeToString()


async def test_ranks_of_one_host_beat_and_are_answered_together(cluster: Cluster) -> None:
    for worker_id in ("w0", "w1"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", takes_news=True)
    for turn in (1, 2):
        for worker_id in ("w0", "w1"):
            cluster.suspect(worker_id)
        await stream.write(beats((1, 5 * turn, at(7)), (2, 300 * turn, at(8)), alike=TRAINING))
        news = told(await next_frame(stream))
        assert {tie: item.heard for tie, item in news.items()} == {1: 5 * turn, 2: 300 * turn}
        assert {item.generation for item in news.values()} == {2}
        assert not cluster.suspects
    for worker_id, step in (("w0", 7), ("w1", 8)):
        said = cluster.report(worker_id).status
        assert (said.state, said.current_step) == (pb.WorkerStatus.TRAINING, step)


async def test_who_beats_together_is_let_in_anew_when_somebody_came(cluster: Cluster) -> None:
    for worker_id in ("w0", "w1"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", takes_news=True)
    await cluster.register("w2", "b")
    heard_of: dict[int, int] = {}
    await stream.write(beats((1, 5, at(7)), (2, 6, at(8)), alike=TRAINING))
    while len(heard_of) < 2:
        for frame in (await asyncio.wait_for(stream.read(), 5)).ties.frames:
            news = rk.RankNews.FromString(frame.payload)
            heard_of[frame.tie] = news.heard
            assert news.generation == 3
    assert heard_of == {1: 5, 2: 6}
    await stream.write(beats((1, 6, at(8)), (2, 7, at(9)), alike=TRAINING))
    assert {tie: news.heard for tie, news in told(await next_frame(stream)).items()} == {1: 6, 2: 7}


async def test_of_those_who_beat_together_each_is_judged_on_its_own(cluster: Cluster) -> None:
    """One's tie nobody knows, and one says what is no status: the third counts."""
    for worker_id in ("w0", "w1"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", takes_news=True)
    await stream.write(beats((1, 5, at(7)), (9, 5, at(7)), (2, 6, b"\xff"), alike=TRAINING))
    frames: dict[int, Any] = {}
    while len(frames) < 3:
        frames |= {frame.tie: frame for frame in (await asyncio.wait_for(stream.read(), 5)).ties.frames}
    assert rk.RankNews.FromString(frames[1].payload).heard == 5
    assert [(frames[tie].ended, frames[tie].error_code) for tie in (9, 2)] == [(True, "invalid_argument")] * 2
    assert cluster.report("w0").status.current_step == 7


async def test_what_was_said_before_the_end_of_a_tie_was_heard_is_not_refused_again(cluster: Cluster) -> None:
    """An agent may pass on beats and arrivals of a rank that is out already: of thousands, each refusal would be one
    too many. A hello opens a tie, whatever was before."""
    for worker_id in ("w0", "w1"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", takes_news=True)
    await cluster.workers.DeregisterWorker(pb.WorkerInfo(worker_id="w1", incarnation="i"))
    for _ in range(3):
        await stream.write(beats((1, 5, at(7)), (2, 6, at(8)), alike=TRAINING))
        await stream.write(together((1, "w0"), (2, "w1")))
    await stream.write(ag.AgentMessage(beat=ag.AgentBeat(sequence=7)))
    ends: list[tuple[int, str]] = []
    while (message := await asyncio.wait_for(stream.read(), 5)).WhichOneof("message") != "beat":
        ends += [(frame.tie, frame.error_code) for frame in message.ties.frames if frame.ended]
    assert ends == [(2, "fenced")]
    await cluster.register("w1", "a")
    await stream.write(words(2, hello="w1"))
    frames: list[Any] = []
    while not any(frame.tie == 2 and frame.payload for frame in frames):
        frames = list((await asyncio.wait_for(stream.read(), 5)).ties.frames)
    assert not any(frame.ended for frame in frames)


async def test_a_state_that_nobody_knows_ends_the_ties_of_those_who_say_it(cluster: Cluster) -> None:
    for worker_id in ("w0", "w1"):
        await cluster.register(worker_id, "a")
    stream = await host_of(cluster, "a", "w0", "w1", takes_news=True)
    await stream.write(beats((1, 5, at(7)), (2, 6, at(7)), alike=b"\x08\x63"))
    frames: dict[int, Any] = {}
    while len(frames) < 2:
        frames |= {frame.tie: frame for frame in (await asyncio.wait_for(stream.read(), 5)).ties.frames}
    assert [frames[tie].error_code for tie in (1, 2)] == ["invalid_argument"] * 2


async def test_a_status_that_cannot_be_read_is_none_and_harms_nobody(cluster: Cluster) -> None:
    await cluster.register("w0", "a")
    stream = await host_of(cluster, "a", "w0", takes_news=True)
    for own in (at(7), b"\xff", b"\x08\x63"):
        await stream.write(beats((1, 5, own), alike=TRAINING))
        assert told(await next_frame(stream))[1].heard == 5
    assert not cluster.report("w0").HasField("status")


async def test_beats_that_cannot_be_read_end_the_agents_stream(cluster: Cluster) -> None:
    await cluster.register("w0", "a")
    stream = await host_of(cluster, "a", "w0", takes_news=True)
    message = beats((1, 5, at(7)))
    message.ties.frames[0].beats.sequences.append(3)
    await stream.write(message)
    with pytest.raises(grpc.aio.AioRpcError, match="beats"):
        await next_frame(stream)


@pytest.mark.parametrize("takes_news", [True, False])
async def test_a_loss_is_told_to_a_host_in_one_frame_if_it_takes_one(cluster: Cluster, takes_news: bool) -> None:
    for worker_id, agent_id in (("w0", "a"), ("w1", "a"), ("w2", "b")):
        await cluster.register(worker_id, agent_id)
    stream = await host_of(cluster, "a", "w0", "w1", takes_news=takes_news)
    await stream.write(together((1, "w0"), (2, "w1")))
    await heard(stream)
    await cluster.workers.DeregisterWorker(pb.WorkerInfo(worker_id="w2", incarnation="i"))
    frames: list[Any] = []
    news: list[tuple[int, rk.RankNews]] = []
    while len(news) < 4:
        new = list((await asyncio.wait_for(stream.read(), 5)).ties.frames)
        frames += new
        for frame in new:
            alone = [(frame.tie, rk.RankNews.FromString(frame.payload))]
            news += list(told(frame).items()) if frame.HasField("news") else alone
    assert len(frames) == (2 if takes_news else 4)
    lost = {(tie, loss.worker_id) for tie, item in news for loss in item.lost}
    assert lost == {(1, "w2"), (2, "w2")}
    results = {(tie, item.result.request_id, item.result.error_code, *item.result.missing) for tie, item in news}
    assert results - {(1, "", ""), (2, "", "")} == {(1, "r", "barrier_broken", "w2"), (2, "r", "barrier_broken", "w2")}
