"""Which records of workers that are gone are dropped: the longest gone, whoever asks."""

import random

from strata.cluster.gone import Gone
from strata.cluster.members import Worker
from strata.types.workers import MemberState


def _worker(name: str, ended_at: float) -> Worker:
    return Worker(
        worker_id=name,
        task_id="t",
        incarnation="i",
        rank=0,
        hostname="",
        port=0,
        gpu_count=0,
        memory_bytes=0,
        agent_id="",
        metadata={},
        joined_at=0.0,
        state=MemberState.LOST,
        ended_at=ended_at,
    )


def test_who_followed_and_who_loaded_drop_the_same() -> None:
    """Workers go and come back, some of them at the same moment."""
    chance = random.Random(1)
    followed, ended = Gone(), dict[str, float]()
    for moment in range(5_000):
        name = f"w{chance.randrange(300)}"
        if name in ended and chance.random() < 0.5:
            del ended[name]
            followed.discard(name)
        else:
            ended[name] = float(moment // 3)
            followed.add(name, ended[name])
    loaded = Gone()
    loaded.load(_worker(name, at) for name, at in ended.items())
    expected = sorted(ended, key=lambda name: (ended[name], name))[:-20]
    assert list(followed.take_beyond(20)) == list(loaded.take_beyond(20)) == expected
    assert list(followed.take_beyond(20)) == []


def test_one_that_goes_and_comes_back_for_ever_takes_no_memory() -> None:
    gone = Gone()
    for moment in range(10_000):
        gone.add("w", float(moment))
        gone.discard("w")
    assert len(gone._oldest) <= 1_001


def test_a_time_that_is_no_number_ends_nothing() -> None:
    gone = Gone()
    for number in range(5):
        gone.add(f"w{number}", float("nan"))
    assert list(gone.take_beyond(1)) == []
