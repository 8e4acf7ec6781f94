"""Targets: paired ratios, both directions, the tolerance, and what cannot be judged."""

import pytest

from benchmarks.results import Spread, Target, VariantResult, Verdict, judge


def variant(name: str, *values: float, metric: str = "wall_s") -> VariantResult:
    return VariantResult(name=name, label=name, samples=tuple({metric: value} for value in values), versions={})


def verdict(target: Target, *variants: VariantResult) -> Verdict:
    return judge(target, {each.name: each for each in variants}).verdict


def test_a_spread_is_median_and_extremes() -> None:
    assert Spread.of([3.0, 1.0, 2.0]) == Spread(median=2.0, low=1.0, high=3.0)


def test_ratios_are_taken_round_by_round() -> None:
    # The machine got ten times slower in the last rounds; each round's ratio is still 0.5.
    outcome = judge(
        Target(metric="wall_s", versus="peer", at_most=0.5),
        {"ours": variant("ours", 1, 10, 100), "peer": variant("peer", 2, 20, 200)},
    )
    assert outcome.measured == Spread(median=0.5, low=0.5, high=0.5)
    assert outcome.verdict is Verdict.PASS


@pytest.mark.parametrize(
    ("measured", "expected"), [(1.0, Verdict.PASS), (1.1, Verdict.NEAR), (1.14, Verdict.NEAR), (1.2, Verdict.MISS)]
)
def test_lower_is_better(measured: float, expected: Verdict) -> None:
    target = Target(metric="wall_s", versus="peer", at_most=1.0)
    assert verdict(target, variant("ours", measured), variant("peer", 1.0)) is expected


@pytest.mark.parametrize(
    ("measured", "expected"), [(2.0, Verdict.PASS), (3.0, Verdict.PASS), (1.75, Verdict.NEAR), (1.6, Verdict.MISS)]
)
def test_higher_is_better(measured: float, expected: Verdict) -> None:
    target = Target(metric="ops_per_s", versus="peer", at_least=2.0)
    ours = variant("ours", measured, metric="ops_per_s")
    assert verdict(target, ours, variant("peer", 1.0, metric="ops_per_s")) is expected


def test_an_absolute_claim_needs_no_peer() -> None:
    assert verdict(Target(metric="wall_s", versus=None, at_most=0.4), variant("ours", 0.2)) is Verdict.PASS
    assert verdict(Target(metric="wall_s", versus=None, at_most=0.4), variant("ours", 0.6)) is Verdict.MISS


def test_a_metric_missing_from_one_round_cannot_be_judged() -> None:
    ours = VariantResult(name="ours", label="", samples=({"p99_s": 1.0}, {"wall_s": 1.0}), versions={})
    with pytest.raises(ValueError, match="ours did not report p99_s in every round"):
        verdict(Target(metric="p99_s", versus=None, at_most=1), ours)


def test_a_ratio_to_zero_is_refused() -> None:
    with pytest.raises(ValueError, match=r"peer reported 0.* no ratio"):
        verdict(Target(metric="wall_s", versus="peer", at_most=1), variant("ours", 1.0), variant("peer", 0.0))


@pytest.mark.parametrize("bound", [None, 1.0])
def test_a_target_states_exactly_one_bound(bound: float | None) -> None:
    with pytest.raises(ValueError, match="exactly one"):
        Target(metric="wall_s", versus=None, at_most=bound, at_least=bound)


def test_none_at_all_is_a_claim_without_tolerance() -> None:
    target = Target(metric="dropped", versus=None, at_most=0)
    assert verdict(target, variant("ours", 0.0, metric="dropped")) is Verdict.PASS
    assert verdict(target, variant("ours", 1.0, metric="dropped")) is Verdict.MISS


def test_a_bound_that_always_holds_is_refused() -> None:
    with pytest.raises(ValueError, match="positive"):
        Target(metric="rps", versus=None, at_least=0)


def test_a_target_reads_as_a_sentence() -> None:
    assert str(Target(metric="wall_s", versus="torch", at_most=0.5)) == "wall_s of ours / torch ≤ 0.5"
    assert str(Target(metric="rps", of="floor", versus=None, at_least=10)) == "rps of floor ≥ 10"
