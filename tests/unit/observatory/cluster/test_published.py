"""The followed cluster as it is published: whoever got an answer to a command finds the change on the next look."""

import asyncio

import pytest

from strata.clock import ManualClock
from strata.cluster import events as ev
from strata.cluster.snapshot import dump_cluster
from strata.observatory.answers.status import Status
from strata.observatory.background.setaside import SetAside
from strata.observatory.cluster import published as module
from strata.observatory.cluster.followed import FollowedCluster
from strata.observatory.cluster.published import PublishedCluster
from strata.observatory.stream.broadcaster import Broadcaster
from tests.support.answers import partly

_REGISTERED = ev.DatasetRegistered(
    dataset_id="d1", path="/data", format="csv", total_samples=4, shard_size=2, shuffle=False, seed=0,
    metadata={}, file_paths=(), file_samples=(), at=1.0,
)  # fmt: skip


@pytest.fixture
def published() -> PublishedCluster:
    clock = ManualClock()
    return PublishedCluster(
        Broadcaster(lambda _: b"{}", clock), clock, lambda: partly(Status), SetAside(clock, lambda _: None)
    )


async def test_an_event_is_shown_when_the_records_hold_it(published: PublishedCluster) -> None:
    waiting = asyncio.create_task(published.shown(2))
    later = asyncio.create_task(published.shown(3))
    await asyncio.sleep(0)
    published.apply(1, "SomethingNewer", b"{}")
    await asyncio.sleep(0)
    assert not waiting.done()
    published.apply(2, "DatasetRegistered", ev.encode_event(_REGISTERED))
    await waiting
    assert "d1" in published.followed.records.datasets
    assert not later.done()
    published.load(9, dump_cluster(FollowedCluster().records))
    await later
    await published.shown(9)


async def test_a_feed_that_stands_still_holds_nobody_for_ever(
    published: PublishedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_SHOWN_WITHIN_S", 0.01)
    await published.shown(1)
    published.apply(1, "SomethingNewer", b"{}")
    assert published._awaited == []
