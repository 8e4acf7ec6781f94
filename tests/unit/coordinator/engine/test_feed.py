"""The feed: resumable by number, and a slow follower is cut off, never waited for."""

from strata.coordinator.engine.feed import Feed
from strata.coordinator.journal.base import Record


def record(seq: int) -> Record:
    return Record(seq, 0.0, "Kind", b"{}")


def test_since_gives_what_was_missed() -> None:
    feed = Feed()
    feed.start_after(5, [record(6), record(7)])
    feed.publish([record(8)])
    assert [item.seq for item in feed.since(5) or ()] == [6, 7, 8]
    assert [item.seq for item in feed.since(7) or ()] == [8]
    assert feed.since(8) == []


def test_since_says_when_it_cannot() -> None:
    feed = Feed()
    feed.start_after(5, [])
    assert feed.since(5) == []
    assert feed.since(4) is None, "it was before the snapshot"
    assert feed.since(6) is None, "it is from another life of the journal"
    feed.publish([record(6)])
    assert feed.since(3) is None
    for seq in range(7, 20_100):
        feed.publish([record(seq)])
    assert feed.since(5) is None, "the ring has moved on"
    assert feed.since(20_000) is not None


def test_large_records_are_kept_as_far_as_they_fit() -> None:
    feed = Feed()
    body = bytes(1 << 20)
    for seq in range(1, 101):
        feed.publish([Record(seq, 0.0, "Kind", body)])
    assert feed.since(10) is None
    assert [item.seq for item in feed.since(90) or ()] == list(range(91, 101))


def test_a_follower_that_leaves_large_records_lying_is_cut_off() -> None:
    feed = Feed()
    slow = feed.follow()
    body = bytes(1 << 20)
    for seq in range(1, 101):
        feed.publish([Record(seq, 0.0, "Kind", body)])
    assert slow.cut


async def test_a_follower_that_falls_behind_is_cut_off() -> None:
    feed = Feed()
    slow, quick = feed.follow(), feed.follow()
    for seq in range(1, 5_000):
        feed.publish([record(seq)])
        assert (await quick.next())[0].seq == seq
    assert slow.cut
    assert not quick.cut
    feed.leave(slow)
    feed.leave(slow)
