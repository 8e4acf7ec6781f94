"""Names of metrics by what somebody types, of all runs: a page is told of the newest runs and of their series alone."""

from collections.abc import Iterable

import numpy as np

from strata.observatory.answers.runs import MetricName
from strata.observatory.live.view import LiveView

__all__ = ["find_names", "plan_names"]


def find_names(live: LiveView, text: str, limit: int) -> list[MetricName]:
    """Names that hold every word of the text, each with the newest run that has logged it and is not archived, if there
    is one. Names that only deleted runs have had are none."""
    found: list[MetricName] = []
    entries = live.runs.entries()

    def freshness(run_id: str) -> tuple[bool, int, str]:
        entry = entries[run_id]
        return not entry.is_archived, entry.start_ms or 0, run_id

    for metric in plan_names(live.series.metrics(), text):
        runs, _ = live.series.words("run", np.array(live.series.of_metric(metric), np.int64))
        newest = max((run_id for run_id in runs if run_id in entries), key=freshness, default="")
        if (info := live.runs.info(newest)) is not None:
            found.append(MetricName(metric=metric, run=info))
        if len(found) == limit:
            break
    return found


def plan_names(names: Iterable[str], text: str) -> list[str]:
    """Those that hold every word, whatever its case: first those that begin with the text, then by the alphabet."""
    needle = text.strip().lower()
    words = needle.split()
    hits = [(name.lower(), name) for name in names if all(word in name.lower() for word in words)]
    return [name for _, name in sorted(hits, key=lambda hit: (not hit[0].startswith(needle), hit))]
