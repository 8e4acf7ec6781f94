"""Frames that are written by hand are what protobuf writes."""

import pytest

from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.generated import ranks_pb2 as rk
from strata.protocol.tie_frames import (
    beat_words,
    begun_releases,
    first_order_part,
    heard_part,
    news_frame,
    news_to_all,
    order_part,
    request_part,
    ties_message,
    written_frame,
)


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 300, 16_383, 16_384, 70_000])
def test_news_of_any_length(size: int) -> None:
    frames = [ag.TieFrame(tie=tie, payload=b"x" * max(size, 1)) for tie in (1, 127, 128, 2**40)]
    message = ag.CoordinatorMessage(ties=ag.TieFrames(frames=frames))
    assert ties_message(news_frame(frame.tie, frame.payload) for frame in frames) == message.SerializeToString()


def test_releases_and_ends_are_one_message() -> None:
    alike = pb.BarrierResponse(released=True, barrier_id="b" * 200, participants=10_000, generation=7, absent=["w"])
    for size in (1, 40, 300):
        releases = ag.Releases(alike=alike, ties=range(1, size), request_id="r")
        place = first_order_part(10_000)
        written = begun_releases(releases.SerializeToString(), len(place)) + place
        releases.first_order = 10_000
        message = ag.CoordinatorMessage(ties=ag.TieFrames(frames=[ag.TieFrame(releases=releases)]))
        assert written == message.SerializeToString()
    ended = ag.TieFrame(tie=4, ended=True, error_code="Fenced")
    message = ag.CoordinatorMessage(ties=ag.TieFrames(frames=[ended]))
    assert ties_message([written_frame(ended)]) == message.SerializeToString()


@pytest.mark.parametrize("sequence", [0, 1, 300, 2**62, -1])
def test_what_is_each_one_s_own_is_read_behind_what_is_alike(sequence: int) -> None:
    news = rk.RankNews(generation=3, term=2, stop_at=0, heard=sequence)
    alike = rk.RankNews(generation=3, term=2, stop_at=0).SerializeToString()
    assert rk.RankNews.FromString(alike + heard_part(sequence)) == news
    broken = rk.RankNews(result=rk.BarrierResult(request_id="r" * 200, error_code="barrier_broken", missing=["w", "v"]))
    alike = rk.RankNews(result=rk.BarrierResult(error_code="barrier_broken", missing=["w", "v"])).SerializeToString()
    assert rk.RankNews.FromString(alike + request_part("r" * 200)) == broken
    response = pb.BarrierResponse(released=True, participants=3)
    alike = rk.RankNews(result=rk.BarrierResult(request_id="r", response=response)).SerializeToString()
    response.arrival_order = 300
    placed = rk.RankNews(result=rk.BarrierResult(request_id="r", response=response))
    assert rk.RankNews.FromString(alike + order_part(300)) == placed
    status = pb.WorkerStatus(current_step=4)
    words = rk.RankWords(beat=pb.HeartbeatRequest(status=status), sequence=sequence)
    assert rk.RankWords.FromString(beat_words(status.SerializeToString(), sequence)) == words


def test_news_to_several() -> None:
    news = ag.News(ties=[1, 2**40], alike=b"a", own=[b"", b"b"])
    message = ag.CoordinatorMessage(ties=ag.TieFrames(frames=[ag.TieFrame(news=news)]))
    assert ties_message([news_to_all([1, 2**40], b"a", [b"", b"b"])]) == message.SerializeToString()
