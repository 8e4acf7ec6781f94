"""Retention is a pure decision: each step is kept or deleted, once, with a reason."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.checkpoint.retention import RetentionPolicy, SaveFolder, plan_garbage, plan_retention
from strata.errors import InvalidConfig


def test_the_newest_every_nth_and_the_protected_stay() -> None:
    plan = plan_retention(range(0, 1100, 100), RetentionPolicy(keep_count=2, keep_every=500), {300: "pinned"})
    assert plan.keep == {
        1000: "one of the newest 2",
        900: "one of the newest 2",
        500: "every 500 steps",
        300: "pinned",
        0: "every 500 steps",
    }
    assert sorted(plan.delete) == [100, 200, 400, 600, 700, 800]
    assert "keep_count is 2" in plan.delete[800]


@given(
    st.lists(st.integers(0, 200), max_size=30),
    st.integers(1, 6),
    st.none() | st.integers(1, 50),
    st.sets(st.integers(0, 200), max_size=5),
)
def test_nothing_that_should_live_is_deleted(
    steps: list[int], keep_count: int, keep_every: int | None, pinned: set[int]
) -> None:
    protected = dict.fromkeys(pinned, "pinned")
    plan = plan_retention(steps, RetentionPolicy(keep_count=keep_count, keep_every=keep_every), protected)
    assert set(plan.keep) | set(plan.delete) == set(steps)
    assert not set(plan.keep) & set(plan.delete)
    assert set(sorted(set(steps))[-keep_count:]) <= set(plan.keep)
    assert pinned & set(steps) <= set(plan.keep)
    assert all(keep_every is None or step % keep_every for step in plan.delete)


def test_no_limit_keeps_all_and_bad_limits_are_refused() -> None:
    assert plan_retention([1, 2, 3], RetentionPolicy(keep_count=None), {}).delete == {}
    for bad in ({"keep_count": 0, "keep_every": None}, {"keep_count": 1, "keep_every": 0}):
        with pytest.raises(InvalidConfig, match="is 0"):
            RetentionPolicy(**bad)


def test_only_dead_quiet_attempts_are_garbage() -> None:
    def attempt(name: str, *, committed: bool = False, age_s: float = 99.0) -> SaveFolder:
        return SaveFolder(step=1, attempt=name, committed=committed, age_s=age_s)

    found = [attempt("good", committed=True), attempt("running"), attempt("young", age_s=5), attempt("dead")]
    doomed = plan_garbage(found, running=frozenset({"running"}), grace_s=10)
    assert list(doomed) == [(1, "dead")]
    assert "99 s" in doomed[1, "dead"]
