"""Where forked runs come from: the run that a fork went on from, that run's own origin, and so on."""

from strata.observatory.answers.runs import RunOrigin
from strata.observatory.live.runs import RunBook

__all__ = ["lineage_of"]


def lineage_of(runs: RunBook, run_id: str) -> list[RunOrigin]:
    """Parent first, then its own: each with the last step that counts for this run."""
    found: list[RunOrigin] = []
    seen = {run_id}
    info = runs.info(run_id)
    while info is not None and info.forked_from is not None and info.forked_from.run_id not in seen:
        origin = info.forked_from
        step = min([origin.step, *(earlier.step for earlier in found)])
        found.append(RunOrigin(run_id=origin.run_id, step=step))
        seen.add(origin.run_id)
        info = runs.info(origin.run_id)
    return found
