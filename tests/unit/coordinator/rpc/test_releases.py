"""What members are told of an end, as bytes."""

from strata.cluster.events import BarrierReleased
from strata.coordinator.rpc.releases import ReleaseWriter
from strata.protocol.generated import ranks_pb2 as rk


def released(barrier_id: str) -> BarrierReleased:
    return BarrierReleased(
        task_id="t",
        barrier_id=barrier_id,
        step=0,
        round=1,
        generation=1,
        worker_ids=("a", "b"),
        request_ids=("r",),
        absent=(),
        created_at=0.0,
        at=0.0,
    )


def durable(_: BarrierReleased) -> tuple[int, int]:
    return 0, 0


def meeting(writer: ReleaseWriter, event: BarrierReleased, place: int) -> str:
    news = rk.RankNews.FromString(writer.write(event, "r", place))
    assert (news.result.response.barrier_id, news.result.response.arrival_order) == (event.barrier_id, place)
    return news.result.response.meeting


def test_a_release_has_one_name_whatever_is_told_in_between() -> None:
    """Those of a large barrier leave a few hosts at a time, and another task's may come between."""
    writer, first, second = ReleaseWriter(durable), released("one"), released("two")
    names = [
        meeting(writer, first, 1),
        meeting(writer, second, 1),
        meeting(writer, first, 2),
        meeting(writer, second, 2),
    ]
    assert names[:2] == names[2:]
    assert len(set(names)) == 2


def test_no_two_coordinators_have_the_same_names() -> None:
    """Also if one of them was given a data folder of yesterday, and so has the other's term."""
    event = released("one")
    assert meeting(ReleaseWriter(durable), event, 1) != meeting(ReleaseWriter(durable), event, 1)
