"""Retention is a pure decision: which steps go, each with its reason."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from strata.checkpoint.retention import RetentionPolicy, SaveFolder, best_step, plan_garbage, plan_retention
from strata.errors import InvalidConfig


def test_the_newest_every_nth_and_the_protected_stay() -> None:
    doomed = plan_retention(range(0, 1100, 100), RetentionPolicy(keep_count=2, keep_every=500), {300})
    assert sorted(doomed) == [100, 200, 400, 600, 700, 800]
    assert doomed[800] == "2 newer ones exist, keep_count is 2"


@given(
    st.lists(st.integers(0, 200), max_size=30),
    st.integers(1, 6),
    st.none() | st.integers(1, 50),
    st.sets(st.integers(0, 200), max_size=5),
)
def test_nothing_that_should_live_is_deleted(
    steps: list[int], keep_count: int, keep_every: int | None, pinned: set[int]
) -> None:
    doomed = set(plan_retention(steps, RetentionPolicy(keep_count=keep_count, keep_every=keep_every), pinned))
    stay = (
        set(sorted(set(steps))[-keep_count:])
        | pinned
        | {step for step in steps if keep_every and step % keep_every == 0}
    )
    assert doomed == set(steps) - stay


def test_no_limit_keeps_all_and_bad_limits_are_refused() -> None:
    assert plan_retention([1, 2, 3], RetentionPolicy(keep_count=None), ()) == {}
    for bad in ({"keep_count": 0, "keep_every": None}, {"keep_count": 1, "keep_every": 0}):
        with pytest.raises(InvalidConfig, match="is 0"):
            RetentionPolicy(**bad)


@pytest.mark.parametrize("odd", [math.nan, 2.0, "3", ""])
def test_a_limit_that_is_no_whole_number_is_refused(odd: Any) -> None:
    for name in ("keep_count", "keep_every"):
        with pytest.raises(InvalidConfig, match=f"{name} is {odd!r}; it must be a whole number"):
            RetentionPolicy(**{name: odd})


def test_only_dead_quiet_attempts_are_garbage() -> None:
    def attempt(name: str, *, committed: bool = False, age_s: float = 99.0) -> SaveFolder:
        return SaveFolder(step=1, attempt=name, committed=committed, age_s=age_s)

    found = [attempt("good", committed=True), attempt("running"), attempt("young", age_s=5), attempt("dead")]
    doomed = plan_garbage(found, running=frozenset({"running"}), grace_s=10)
    assert list(doomed) == [(1, "dead")]
    assert "99 s" in doomed[1, "dead"]


def test_the_best_by_a_metric_is_known() -> None:
    saved = {10: {"metrics": {"loss": 0.5}}, 20: {"metrics": {"loss": 0.2}}, 30: {"metrics": {"loss": 0.2}}, 40: {}}
    assert best_step(saved, ("loss", "min")) == 30
    assert best_step(saved, ("loss", "max")) == 10
    assert best_step(saved, ("accuracy", "max")) is None


@pytest.mark.parametrize("odd", [{"metrics": None}, {"metrics": {"loss": "0.1"}}, {"metrics": {"loss": math.nan}}])
def test_what_is_no_value_is_never_the_best(odd: dict[str, Any]) -> None:
    assert best_step({10: odd}, ("loss", "min")) is None


@pytest.mark.parametrize("odd", [("loss", "least"), "loss", ("loss",), ("", "min"), (None, "min"), 5])
def test_a_best_that_nobody_can_tell_is_refused(odd: Any) -> None:
    with pytest.raises(InvalidConfig, match="keep_best is"):
        RetentionPolicy(keep_best=odd)
