"""Frames that are written by hand are what protobuf writes."""

import pytest

from strata.protocol.generated import agents_pb2 as ag
from strata.protocol.generated import coordinator_pb2 as pb
from strata.protocol.tie_frames import alike_part, news_frame, releases_frame, ties_message, written_frame


@pytest.mark.parametrize("size", [0, 1, 126, 127, 128, 300, 16_383, 16_384, 70_000])
def test_news_of_any_length(size: int) -> None:
    frames = [ag.TieFrame(tie=tie, payload=b"x" * max(size, 1)) for tie in (1, 127, 128, 2**40)]
    message = ag.CoordinatorMessage(ties=ag.TieFrames(frames=frames))
    assert ties_message(news_frame(frame.tie, frame.payload) for frame in frames) == message.SerializeToString()


def test_releases_in_parts_are_one_message() -> None:
    alike = pb.BarrierResponse(released=True, barrier_id="b" * 200, participants=10_000, generation=7, absent=["w"])
    ties, request_ids, orders = range(1, 300), [f"r{number}" for number in range(299)], range(5, 304)
    own = ag.Releases(request_ids=request_ids, arrival_orders=orders)
    frame = releases_frame(alike_part(alike), ag.Releases(ties=ties).SerializeToString(), own.SerializeToString())
    whole = ag.Releases(alike=alike, ties=ties, request_ids=request_ids, arrival_orders=orders)
    ended = ag.TieFrame(tie=4, ended=True, error_code="Fenced")
    message = ag.CoordinatorMessage(ties=ag.TieFrames(frames=[ag.TieFrame(releases=whole), ended]))
    assert ties_message([frame, written_frame(ended)]) == message.SerializeToString()
