"""uhashring: build a ring of workers and look up every shard; or change one worker and look up every shard again."""

import sys
from collections import Counter

from uhashring import HashRing

from benchmarks.measure import report, stopwatch


def main(num_workers: int, num_shards: int, action: str) -> None:
    workers = [f"worker-{number:05}" for number in range(num_workers)]
    keys = [f"shard-{number}" for number in range(num_shards)]
    if action == "full":
        with stopwatch() as watch:
            ring = HashRing(nodes=workers)
            owners = [ring.get_node(key) for key in keys]
        counts = Counter(owners)
        report(watch.values(max_over_mean=max(counts.values()) / (num_shards / num_workers)))
        return
    ring = HashRing(nodes=workers)
    before = [ring.get_node(key) for key in keys]
    with stopwatch() as watch:
        if action == "leave":
            ring.remove_node(workers[500])
        else:
            ring.add_node("worker-new")
        after = [ring.get_node(key) for key in keys]
    moved = sum(left != right for left, right in zip(before, after, strict=True))
    report(watch.values(moved=moved))


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3])
