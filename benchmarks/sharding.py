"""Who owns which shard: full assignment and rebalance at 1,000 workers, beside uhashring and our own 150-vnode ring.

The claims to beat are those of the original: 10 ms for 1,000 × 10K, 92 ms and 380 MB for 1,000 × 100K, deviation < 5 %.
"""

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, Variant, floor, ours, peer
from benchmarks.measure import stopwatch
from strata.sharding import ShardManager
from strata.sharding.hashing import hash_name
from strata.sharding.lanes import LaneLayout, OrderSpec
from strata.sharding.order import EpochOrder
from strata.sharding.permutation import Permutation
from strata.sharding.sticky import plan_sticky
from strata.sharding.table import Table

__all__ = ["BENCHMARK"]

WORKERS = [f"worker-{number:05}" for number in range(1000)]
PEER = ("uhashring==2.5",)


def assign(num_shards: int, policy: str = "sticky") -> dict[str, float]:
    """The workers are there; a dataset is registered and its first table made, with no name hashed before."""
    manager = ShardManager(policy)  # type: ignore[arg-type]  # both names are valid
    for worker in WORKERS:
        manager.register_worker(worker)
    hash_name.cache_clear()
    with stopwatch() as watch:
        manager.register_dataset_params("data", num_shards * 1000, 1000, True, 42)
        owner = manager.assignment("data")
    counts = np.bincount(owner, minlength=len(WORKERS))
    deviation = float(counts.max() / counts.mean())
    return watch.values(max_over_mean=deviation, table_bytes=manager.table_bytes("data"))


def rebalance(num_shards: int, change: Callable[[list[str]], list[str]]) -> dict[str, float]:
    """One worker more or less, given the table before. Ten times per measurement: once is below the clock's grain."""
    before = plan_sticky(num_shards, WORKERS)
    members = change(WORKERS)
    with stopwatch() as watch:
        for _ in range(10):
            after = plan_sticky(num_shards, members, before)
    moved = int(np.count_nonzero(np.array(before.slots)[before.owner] != np.array(after.slots)[after.owner]))
    counts = after.counts()
    return {
        "wall_s": watch.wall_s / 10,
        "cpu_s": watch.cpu_s / 10,
        "moved": moved,
        "moved_over_minimum": moved / _minimum(before, members),
        "max_minus_min": int(counts.max() - counts.min()),
    }


def _minimum(before: Table, members: list[str]) -> int:
    """The least that any balanced table can move."""
    held = sorted((len(before.units_of(member)) for member in members), reverse=True)
    share, extra = divmod(before.num_units, len(members))
    return before.num_units - sum(min(count, share + (place < extra)) for place, count in enumerate(held))


def leave(members: list[str]) -> list[str]:
    return members[:500] + members[501:]


def join(members: list[str]) -> list[str]:
    return [*members, "worker-new"]


def permute(size: int, count: int) -> dict[str, float]:
    permutation = Permutation(size, 7)
    positions = np.arange(size // 2, size // 2 + count)
    with stopwatch() as watch:
        for _ in range(20):
            permutation(positions)
    return {"wall_s": watch.wall_s / 20, "cpu_s": watch.cpu_s / 20}


def numpy_shuffle(size: int) -> None:
    np.random.default_rng(7).permutation(size)


def find_batch() -> dict[str, float]:
    """The samples of one global batch in the middle of an epoch of a billion samples, from nothing but the sizes."""
    sizes = np.full(100_000, 10_000, dtype=np.int64)
    with stopwatch() as watch:
        spec = OrderSpec(manifest="m", seed=1, num_lanes=64)
        EpochOrder(LaneLayout(sizes, spec), 256).batch(3, 1_234_567)
    return watch.values()


def _uhashring(num_shards: int, action: str) -> Variant:
    args = (str(len(WORKERS)), str(num_shards), action)
    return peer("uhashring", Script(SCRIPTS / "uhashring_assign.py", requires=PEER, args=args))


def _full(num_shards: int, limit_s: float, repeats: int, *more: Variant) -> Case:
    return Case(
        name=f"full assignment, 1,000 workers × {num_shards:,} shards",
        variants=(
            ours(partial(assign, num_shards)),
            ours(partial(assign, num_shards, "ring"), name="ring", label="Strata, policy ring (150 virtual nodes)"),
            floor("numpy argsort of as many hashes", partial(_argsort, num_shards)),
            *more,
        ),
        targets=(
            Target(metric="cpu_s", versus=None, at_most=limit_s),
            Target(metric="table_bytes", versus=None, at_most=50 * num_shards),
            Target(metric="max_over_mean", versus=None, at_most=1.001 + 1000 / num_shards),
            *(Target(metric="cpu_s", versus=variant.name, at_most=0.05) for variant in more),
        ),
        repeats=repeats,
    )


def _argsort(count: int) -> None:
    np.argsort(np.random.default_rng(1).integers(0, 1 << 63, count, dtype=np.uint64))


def _change(name: str, change: Callable[[list[str]], list[str]], num_shards: int, *more: Variant) -> Case:
    return Case(
        name=f"rebalance after one {name}, 1,000 workers × {num_shards:,} shards",
        variants=(
            ours(partial(rebalance, num_shards, change)),
            floor("numpy copy of the owners", lambda: np.zeros(num_shards, np.int32).copy()),
            *more,
        ),
        targets=(
            Target(metric="cpu_s", versus=None, at_most=0.005 * num_shards / 100_000),
            Target(metric="moved_over_minimum", versus=None, at_most=1.0),
            Target(metric="max_minus_min", versus=None, at_most=1.0),
        ),
    )


BENCHMARK = Benchmark(
    name="sharding",
    cases=(
        _full(10_000, 0.003, 7, _uhashring(10_000, "full")),
        _full(100_000, 0.025, 5, _uhashring(100_000, "full")),
        _full(1_000_000, 0.25, 5),
        _change("leave", leave, 100_000, _uhashring(100_000, "leave")),
        _change("join", join, 100_000, _uhashring(100_000, "join")),
        _change("leave", leave, 1_000_000),
        _change("join", join, 1_000_000),
        Case(
            name="256 positions out of the shuffle of a billion samples",
            variants=(
                ours(partial(permute, 1_000_000_000, 256)),
                floor("numpy shuffle of only 1,280,000 indices", partial(numpy_shuffle, 1_280_000)),
            ),
            targets=(Target(metric="cpu_s", versus=None, at_most=0.001),),
        ),
        Case(
            name="global batch 1,234,567 of an epoch of a billion samples, from the shard sizes",
            variants=(ours(find_batch),),
            targets=(Target(metric="wall_s", versus=None, at_most=0.05),),
        ),
    ),
)
