"""`define_metric`: which metrics have a step of their own. Pure: the rules, and the steps that follow from them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Any

from strata.worker.points import Unfit, whole_step

__all__ = ["StepRules"]


@dataclass(slots=True)
class StepRules:
    """By pattern; the longest that fits a name counts, as in wandb an exact name before a glob."""

    rules: dict[str, str] = field(default_factory=dict)
    _newest: dict[str, Any] = field(default_factory=dict)

    def define(self, name: str, step_metric: str | None) -> None:
        if step_metric:
            self.rules[name] = step_metric

    def split(self, values: Mapping[str, Any], step: int) -> tuple[dict[int, dict[str, Any]], list[str]]:
        """The values by the step that each is logged at, and the step metrics that are no whole numbers."""
        if not self.rules:
            return {step: dict(values)}, []
        for metric in set(self.rules.values()) & values.keys():
            self._newest[metric] = values[metric]
        by_step: dict[int, dict[str, Any]] = {}
        odd = set()
        for name, value in values.items():
            own = self._step_metric(name)
            at = step
            if own in self._newest:
                try:
                    at = whole_step(self._newest[own])
                except Unfit:
                    odd.add(own)
            by_step.setdefault(at, {})[name] = value
        return by_step, sorted(odd)

    def _step_metric(self, name: str) -> str:
        """Empty: it has none of its own."""
        fitting = [pattern for pattern in self.rules if fnmatchcase(name, pattern)]
        best = max(fitting, key=lambda pattern: (pattern == name, len(pattern)), default=None)
        return "" if best is None or self.rules[best] == name else self.rules[best]
