"""A few lines at once, then a count."""

from strata.clock import ManualClock
from strata.log_budget import HeldBack, LineBudget


def test_the_first_lines_pass_and_the_rest_is_counted() -> None:
    clock = ManualClock()
    budget: LineBudget[str] = LineBudget(clock, burst=3, window_s=10.0)
    assert [budget.allows("step") for _ in range(5)] == [True, True, True, False, False]
    assert budget.allows("other")
    assert budget.held_back() == []
    clock.advance(10.0)
    assert budget.held_back() == [HeldBack(key="step", count=2, seconds=10.0)]
    assert budget.held_back() == []
    assert budget.allows("step")


def test_keys_without_end_share_one_budget() -> None:
    clock = ManualClock()
    budget: LineBudget[int] = LineBudget(clock, burst=1)
    assert sum(budget.allows(number) for number in range(5_000)) == 1_001
    clock.advance(10.0)
    assert budget.held_back() == [HeldBack(key=None, count=3_999, seconds=10.0)]
