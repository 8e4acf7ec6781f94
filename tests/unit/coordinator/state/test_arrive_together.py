"""Members who arrive together are where they would be had they come one by one, whatever went before."""

from random import Random

import pytest

from strata.coordinator.state.roll import Roll
from strata.errors import StrataError
from strata.types.barriers import BarrierArrival, BarrierKey, BarrierPolicy
from tests.support.pure_cluster import PureCluster

NAMES = tuple("abcdef")
KEYS = tuple(BarrierKey("", name, 0) for name in ("fail", "shrink", "wait", "three"))


def _requests(turn: int, names: list[str], *, alike: bool) -> dict[str, str]:
    return {name: str(turn) if alike else f"{turn}-{name}" for name in names}


def _arrival(key: BarrierKey, worker_id: str, request_id: str) -> BarrierArrival:
    if key.barrier_id == "three":
        return BarrierArrival(worker_id=worker_id, barrier_id="three", request_id=request_id, expected=3)
    policy = BarrierPolicy(key.barrier_id)
    return BarrierArrival(worker_id=worker_id, barrier_id=key.barrier_id, request_id=request_id, policy=policy)


def _one_by_one(cluster: PureCluster, key: BarrierKey, requests: dict[str, str]) -> None:
    for worker_id, request_id in requests.items():
        try:
            _, event = cluster.state.barriers.arrive(_arrival(key, worker_id, request_id), cluster.now())
        except StrataError:
            continue
        if event is not None:
            cluster.state.evolve(event, cluster.now())
            cluster.events.append(event)


def _together(
    cluster: PureCluster, key: BarrierKey, requests: dict[str, str], rolls: dict[tuple[str, ...], Roll]
) -> bool:
    """With one request; those who have one each come one by one."""
    names = tuple(requests)
    common = _arrival(key, names[0], requests[names[0]])
    roll = rolls.setdefault(names, Roll(names))  # the same ones come again
    is_one = len(set(requests.values())) == 1
    arrived = cluster.state.barriers.arrive_together(common, "", roll, cluster.now()) if is_one else None
    if arrived is None:
        _one_by_one(cluster, key, requests)
        return False
    if arrived[1] is not None:
        cluster.state.evolve(arrived[1], cluster.now())
        cluster.events.append(arrived[1])
    return True


@pytest.mark.parametrize("always", [True, False])
@pytest.mark.parametrize("seed", range(20))
def test_it_is_the_same_as_one_by_one(seed: int, always: bool) -> None:
    """Whether they always come with one request, or each with its own now and then."""
    random = Random(seed)
    rolls: dict[tuple[str, ...], Roll] = {}
    single, many = PureCluster(), PureCluster()
    for cluster in (single, many):
        cluster.join_all(*NAMES[:4])
    num_together = 0
    for turn in range(80):
        alive = sorted(single.ranks())
        key = random.choice(KEYS)
        chosen = random.sample(alive, random.randint(1, len(alive)))
        match random.choice(("arrive", "arrive", "arrive", "arrive", "again", "withdraw", "collect", "join", "lose")):
            case "arrive":
                requests = _requests(turn, chosen, alike=always or turn % 3 > 0)
                _one_by_one(single, key, requests)
                num_together += _together(many, key, requests, rolls)
            case "again":
                earlier = random.randrange(turn + 1)
                requests = _requests(earlier, chosen, alike=always or earlier % 3 > 0)
                _one_by_one(single, key, requests)
                num_together += _together(many, key, requests, rolls)
            case "withdraw":
                for barriers in (single.state.barriers, many.state.barriers):
                    if key in barriers.open:
                        barriers.withdraw(key, barriers.open[key].round, chosen[0])
            case "collect":
                for barriers in (single.state.barriers, many.state.barriers):
                    barriers.collected(key, chosen)
            case "join":
                name = random.choice(NAMES)
                for cluster in (single, many):
                    cluster.join(name, incarnation=f"i-{turn}" if name not in alive else "")
            case "lose" if len(alive) > 2:
                for cluster in (single, many):
                    cluster.lose(chosen[0])
        assert single.events == many.events
        assert single.image() == many.image()
        for barrier in many.state.barriers.open.values():
            assert barrier.members is None or barrier.arrivals.keys() <= barrier.members
    assert num_together > 0, "the schedule proves nothing"
