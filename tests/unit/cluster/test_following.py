"""Whoever follows has the coordinator's own records: after any schedule of faults, cut off at any moment and resumed,
or begun anew from a snapshot.
"""

import json
import random

import pytest

from strata.cluster import events as e
from strata.cluster.model import Cluster
from strata.cluster.snapshot import dump_cluster, load_cluster
from tests.support.schedules import World


class Follower:
    """Has heard the first `seen` of the durable events; everything reaches it as JSON."""

    def __init__(self, coordinator: Cluster, seen: int) -> None:
        self.cluster = Cluster()
        self.seen = seen
        load_cluster(self.cluster, json.loads(image(coordinator)))

    def follow(self, durable: list[e.Event]) -> None:
        for event in durable[self.seen :]:
            self.cluster.evolve(e.decode_event(type(event).__name__, e.encode_event(event)))
        self.seen = len(durable)


def image(cluster: Cluster) -> str:
    return json.dumps(dump_cluster(cluster))


@pytest.mark.timeout(7200)
def test_a_follower_has_the_coordinators_records(request: pytest.FixtureRequest) -> None:
    compared = 0
    for seed in range(request.config.getoption("--schedules")):
        world, chance = World(seed), random.Random(seed)
        durable = world.history.durable
        follower = Follower(world.node.state.cluster, len(durable))
        for _ in range(120):
            world.act()
            turn = chance.random()
            if turn < 0.05:  # it has lost its place
                world.node.flush()
                follower = Follower(world.node.state.cluster, len(durable))
            elif turn < 0.3:  # else it is cut off, and comes back by number
                follower.follow(durable)
                if world.node.durable == world.node.seq:
                    assert image(follower.cluster) == image(world.node.state.cluster), f"seed {seed}"
                    compared += 1
        world.node.flush()
        follower.follow(durable)
        assert image(follower.cluster) == image(world.node.state.cluster), f"seed {seed}"
    assert compared > 100
