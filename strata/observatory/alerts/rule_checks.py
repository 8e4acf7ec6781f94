"""Whether a rule holds for a run: what is known is an argument, and so is time."""

import math
from dataclasses import dataclass

from strata.observatory.alerts.rules import Rule
from strata.observatory.answers.runs import RunInfo
from strata.observatory.records.finding import Finding

__all__ = ["RunFacts", "check_rule", "finding_of", "is_of_rule"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """`last` is the mean over ranks of the metric's newest value, `num_bad` how many of its values were no numbers,
    `expected` the baseline's value at the same step, `saved_at` when its newest checkpoint was made or, without one,
    when it began (Unix seconds). None is what nobody knows."""

    last: float | None = None
    num_bad: int = 0
    expected: float | None = None
    saved_at: float | None = None


def check_rule(rule: Rule, run: RunInfo, facts: RunFacts, now: float) -> str:
    """What is wrong, in words; empty when all is well or nothing is known."""
    match rule.kind:
        case "threshold":
            return _crossed(rule, facts.last)
        case "bad_value":
            return f"{rule.metric} was no number {facts.num_bad:,} times" if facts.num_bad else ""
        case "divergence":
            return _diverged(rule, facts)
        case "no_progress":
            silent_s = now - run.last_event_time_ms / 1000 if run.last_event_time_ms is not None else 0.0
            return f"nothing was logged for {silent_s:.0f} s" if silent_s > rule.for_s else ""
        case "checkpoint_age":
            age_s = now - facts.saved_at if facts.saved_at is not None else 0.0
            return f"its newest checkpoint is {age_s:.0f} s old" if age_s > rule.for_s else ""


def finding_of(rule: Rule, run: RunInfo, what: str) -> Finding:
    """It opens the run's incident trail at its newest step."""
    return Finding(
        kind=f"rule_{rule.kind}",
        severity=rule.severity,
        message=f"{rule.name}: {what} (run {run.name or run.run_id})",
        subject=f"{rule.name}/{run.run_id}",
        run_id=run.run_id,
        task_id=run.task_id,
        step=run.latest_step,
    )


def is_of_rule(name: str, kind: str, subject: str) -> bool:
    """Whether a finding of this kind and subject was made by the rule."""
    return kind.startswith("rule_") and subject.startswith(f"{name}/")


def _crossed(rule: Rule, last: float | None) -> str:
    if last is None or rule.value is None or not math.isfinite(last):
        return ""
    crossed = last > rule.value if rule.comparison == "above" else last < rule.value
    lasting = f" for {rule.for_s:g} s" if rule.for_s else ""
    return f"{rule.metric} is {last:.6g}, {rule.comparison} {rule.value:g}{lasting}" if crossed else ""


def _diverged(rule: Rule, facts: RunFacts) -> str:
    expected = facts.expected if rule.baseline else rule.value
    if facts.last is None or expected is None or not (math.isfinite(facts.last) and math.isfinite(expected)):
        return ""
    margin = abs(expected) * rule.tolerance_percent / 100
    gap = facts.last - expected if rule.comparison == "above" else expected - facts.last
    against = f"run {rule.baseline} at that step" if rule.baseline else "its baseline"
    told = f"{rule.metric} is {facts.last:.6g}, {rule.comparison} {against} ({expected:.6g})"
    return f"{told} by more than {rule.tolerance_percent:g} %" if gap > margin else ""
