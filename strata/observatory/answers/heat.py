"""The picture of one metric over ranks and steps."""

from dataclasses import dataclass

__all__ = ["Heat", "HeatColumn", "HeatMetric"]


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMetric:
    """A metric that several ranks have logged, and how many."""

    metric: str
    num_ranks: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatColumn:
    """One step. `ratios` has for each row the ratio to the median of all ranks, in hundredths: of the row's rank that
    is farthest from it. `top_rank` has the highest value of all; null is where nobody logged a number."""

    step: int
    median: float | None
    top_rank: int | None
    top_ratio: float | None
    ratios: list[int | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Heat:
    """`steps` are those of the whole picture, `columns` the ones that changed since `version`, or all. Row i stands for
    the ranks from `first_ranks[i]` to `last_ranks[i]`. `picture` changes when it begins anew."""

    run_id: str
    metric: str | None
    metrics: list[HeatMetric]
    picture: str
    version: int
    num_ranks: int
    first_ranks: list[int]
    last_ranks: list[int]
    steps: list[int]
    columns: list[HeatColumn]
