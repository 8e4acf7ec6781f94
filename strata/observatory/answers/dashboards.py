"""Saved dashboards as REST takes and shows them: sections of panels, in the order in which they flow over a grid of
twelve columns. The same records check what comes in, so what is stored is what can be shown.
"""

from dataclasses import dataclass, field
from typing import Annotated, ClassVar, Literal

from pydantic import ConfigDict, Field

__all__ = [
    "COLUMNS",
    "BarPanel",
    "DashboardDeleted",
    "DashboardHead",
    "HistogramPanel",
    "ImagePanel",
    "Layout",
    "LinePanel",
    "MarkdownPanel",
    "NumberPanel",
    "Panel",
    "ParallelPanel",
    "SavedDashboard",
    "ScatterPanel",
    "Section",
    "TablePanel",
]

COLUMNS = 12
_ROWS = 16

Name = Annotated[str, Field(max_length=300)]
"""A metric, a column of the run table, or a run."""

Formula = Annotated[str, Field(max_length=500)]
Label = Annotated[str, Field(max_length=255)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Strict:
    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Panel(_Strict):
    id: Annotated[str, Field(min_length=1, max_length=64)]
    title: Label = ""
    w: Annotated[int, Field(ge=1, le=COLUMNS)] = 4
    h: Annotated[int, Field(ge=1, le=_ROWS)] = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LinePanel(_Panel):
    """Metrics and formulas of the runs on show over steps, time or another metric (`x_metric`, where x is `metric`)."""

    kind: Literal["line"]
    metrics: Annotated[list[Name], Field(max_length=50)] = field(default_factory=list)
    formulas: Annotated[list[Formula], Field(max_length=20)] = field(default_factory=list)
    x: Literal["step", "rel", "wall", "metric"] = "step"
    x_metric: Name = ""
    log_x: bool = False
    log_y: bool = False
    clip: bool = False
    smoothing: Annotated[float, Field(ge=0, le=0.999, allow_inf_nan=False)] = 0.0
    smoothing_kind: Literal["ema", "mean", "gauss"] = "ema"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScatterPanel(_Panel):
    """A point per run: a column of the run table on each axis."""

    kind: Literal["scatter"]
    x: Name = ""
    y: Name = ""
    log_x: bool = False
    log_y: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BarPanel(_Panel):
    """A bar per run, or per group of runs: a column of the run table."""

    kind: Literal["bar"]
    column: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ParallelPanel(_Panel):
    """A line per run through its values, and how much each column tells about the target."""

    kind: Literal["parallel"]
    columns: Annotated[list[Name], Field(max_length=12)] = field(default_factory=list)
    target: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NumberPanel(_Panel):
    """One figure of the runs on show: a column of the run table, brought to one value."""

    kind: Literal["number"]
    column: Name = ""
    reduce: Literal["newest", "min", "max", "mean"] = "newest"


@dataclass(frozen=True, slots=True, kw_only=True)
class MarkdownPanel(_Panel):
    """Words of the dashboard's author."""

    kind: Literal["markdown"]
    text: Annotated[str, Field(max_length=20_000)] = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistogramPanel(_Panel):
    """Histograms that runs logged under a key, over their steps."""

    kind: Literal["histogram"]
    key: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImagePanel(_Panel):
    """Images that runs logged under a key, side by side."""

    kind: Literal["image"]
    key: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TablePanel(_Panel):
    """The table that runs logged under a key."""

    kind: Literal["table"]
    key: Name = ""


Panel = Annotated[
    LinePanel
    | ScatterPanel
    | BarPanel
    | ParallelPanel
    | NumberPanel
    | MarkdownPanel
    | HistogramPanel
    | ImagePanel
    | TablePanel,
    Field(discriminator="kind"),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Section(_Strict):
    """Panels under a heading that folds."""

    title: Label = ""
    folded: bool = False
    panels: Annotated[list[Panel], Field(max_length=100)] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout(_Strict):
    """What a dashboard shows. No `runs`: those that the page has chosen. `group_by` is a column of the run table by
    which runs are drawn as one line, `baseline` a run that every chart shows; empty is none."""

    sections: Annotated[list[Section], Field(max_length=50)] = field(default_factory=list)
    runs: Annotated[list[Name], Field(max_length=1_000)] | None = None
    group_by: Name = ""
    baseline: Name = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardHead:
    """A saved dashboard in a list. `version` rises with every save; `author` is who saved it last."""

    id: str
    project: str
    name: str
    version: int
    author: str
    updated_at_ms: int
    num_panels: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedDashboard:
    """A saved dashboard."""

    id: str
    project: str
    name: str
    version: int
    author: str
    updated_at_ms: int
    layout: Layout


@dataclass(frozen=True, slots=True, kw_only=True)
class DashboardDeleted:
    """A dashboard is gone."""

    success: bool
