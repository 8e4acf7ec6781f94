"""Writes a run down: JSON for programs, Markdown for people, both with machine, command, date and versions."""

import json
import os
import platform
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from benchmarks.results import CaseResult, Outcome, Spread, VariantResult

__all__ = ["RunReport", "describe_run", "format_value", "markdown_table", "read", "to_json", "to_markdown", "write"]

SCALES: Mapping[str, tuple[tuple[float, str], ...]] = {
    "_s": ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"), (1e-9, "ns")),
    "_bytes": ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B")),
    "_ms": ((1.0, "ms"),),
    "_us": ((1.0, "µs"),),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """One run of one benchmark: the circumstances and the results."""

    name: str
    command: str
    date: str
    machine: Mapping[str, str]
    versions: Mapping[str, str]
    cases: tuple[CaseResult, ...]
    picture: str = ""  # SVG

    @property
    def missed(self) -> tuple[Outcome, ...]:
        return tuple(outcome for case in self.cases for outcome in case.missed)


def describe_run(
    name: str, cases: Sequence[CaseResult], packages: Sequence[str], *, only: Sequence[str] = (), picture: str = ""
) -> RunReport:
    return RunReport(
        name=name,
        command=f"python -m benchmarks {name}" + (f" --variants {','.join(only)}" if only else ""),
        date=datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC"),
        machine=_machine(),
        versions={"python": platform.python_version(), **{package: _version(package) for package in packages}},
        cases=tuple(cases),
        picture=picture,
    )


def write(report: RunReport, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{report.name}.json").write_text(to_json(report), encoding="utf-8")
    (folder / f"{report.name}.md").write_text(to_markdown(report), encoding="utf-8")
    if report.picture:
        (folder / f"{report.name}.svg").write_text(report.picture, encoding="utf-8")


def read(file: Path) -> RunReport | None:
    """What `to_json` has written, without its verdicts; None where nothing was."""
    if not file.is_file():
        return None
    document = json.loads(file.read_text(encoding="utf-8"))
    return RunReport(
        **{name: document[name] for name in ("name", "command", "date", "machine", "versions")},
        cases=tuple(
            CaseResult(name=case["name"], variants=tuple(map(_variant_from, case["variants"])), outcomes=())
            for case in document["cases"]
        ),
    )


def to_json(report: RunReport) -> str:
    document = {
        "name": report.name,
        "command": report.command,
        "date": report.date,
        "machine": dict(report.machine),
        "versions": dict(report.versions),
        "cases": [
            {
                "name": case.name,
                "variants": [_variant_json(variant) for variant in case.variants],
                "targets": [_outcome_json(outcome) for outcome in case.outcomes],
            }
            for case in report.cases
        ],
    }
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"


def to_markdown(report: RunReport) -> str:
    lines = [
        f"# {report.name}",
        "",
        f"`{report.command}` on {report.date}. Medians, and (lowest … highest) of the interleaved rounds.",
        "",
        f"Machine: {_pairs(report.machine)}. Versions: {_pairs(report.versions)}.",
    ]
    if report.picture:
        lines += ["", f"![{report.name}]({report.name}.svg)"]
    for case in report.cases:
        lines += ["", f"## {case.name}", "", *_variant_table(case.variants)]
        if case.outcomes:
            lines += ["", *_target_table(case.outcomes)]
    return "\n".join(lines) + "\n"


def format_value(metric: str, value: float) -> str:
    """A figure with the unit that its metric's name ends in; four significant digits at most."""
    if metric.endswith("_per_s"):
        return f"{_plain(value)}/s"
    for suffix, scale in SCALES.items():
        if metric.endswith(suffix):
            factor, unit = next((step for step in scale if abs(value) >= step[0]), scale[-1])
            return f"{_plain(value / factor)} {unit}"
    return _plain(value)


def _plain(value: float) -> str:
    if value == int(value) or abs(value) >= 1_000:
        return f"{value:,.0f}"
    return f"{value:.3g}"


def _spread(metric: str, spread: Spread) -> str:
    low, high = format_value(metric, spread.low), format_value(metric, spread.high)
    return f"{format_value(metric, spread.median)} ({low} … {high})"


def _variant_table(variants: Sequence[VariantResult]) -> list[str]:
    metrics = list(dict.fromkeys(metric for variant in variants for metric in variant.metrics()))
    rows = [["variant", "rounds", *metrics]]
    for variant in variants:
        if variant.skipped is not None:
            rows.append([variant.label, "skipped", variant.skipped, *[""] * (len(metrics) - 1)])
            continue
        label = variant.label + (f", {_pairs(variant.versions)}" if variant.versions else "")
        columns = {metric: variant.values(metric) for metric in metrics}
        cells = [_spread(metric, Spread.of(values)) if values else "" for metric, values in columns.items()]
        rows.append([label, str(len(variant.samples)), *cells])
    return markdown_table(rows)


def _target_table(outcomes: Sequence[Outcome]) -> list[str]:
    rows = [["target", "measured", "verdict"]]
    for outcome in outcomes:
        metric = "" if outcome.target.versus else outcome.target.metric  # a ratio has no unit
        measured = _spread(metric, outcome.measured) if outcome.measured else outcome.reason
        rows.append([str(outcome.target), measured, f"**{outcome.verdict}**"])
    return markdown_table(rows)


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    lines = [f"| {' | '.join(row)} |" for row in escaped]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def _variant_json(variant: VariantResult) -> dict[str, object]:
    spreads = {metric: Spread.of(variant.values(metric)) for metric in variant.metrics()}
    return {
        "name": variant.name,
        "label": variant.label,
        "skipped": variant.skipped,
        "versions": dict(variant.versions),
        "metrics": {metric: _spread_json(spread) for metric, spread in spreads.items()},
        "samples": [dict(sample) for sample in variant.samples],
    }


def _variant_from(document: Mapping[str, Any]) -> VariantResult:
    told = {name: document[name] for name in ("name", "label", "skipped", "versions")}
    return VariantResult(**told, samples=tuple(document["samples"]))


def _outcome_json(outcome: Outcome) -> dict[str, object]:
    return {
        "target": str(outcome.target),
        "bound": outcome.target.bound,
        "measured": _spread_json(outcome.measured) if outcome.measured else None,
        "verdict": outcome.verdict.value,
        "reason": outcome.reason,
    }


def _spread_json(spread: Spread) -> dict[str, float]:
    return {"median": spread.median, "min": spread.low, "max": spread.high}


def _pairs(values: Mapping[str, str]) -> str:
    return ", ".join(f"{key} {value}" for key, value in values.items())


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _machine() -> dict[str, str]:
    """What a reader needs to judge the figures; no host name, no path."""
    memory_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {
        "cpu": _cpu_model(),
        "cores": str(len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count()),
        "memory": format_value("_bytes", memory_bytes),
        "system": f"{platform.system()} {platform.machine()}",
        "load": f"{os.getloadavg()[0]:.1f} at the end",
    }


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor() or "unknown"
    return next((line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), "unknown")
