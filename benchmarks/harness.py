"""Runs a benchmark: every variant once per round, interleaved, so that ratios come from one run on one machine state.

A benchmark module (benchmarks/<name>.py) defines `BENCHMARK` and nothing happens on import:

    from benchmarks.harness import SCRIPTS, Benchmark, Case, Script, Target, floor, ours, peer
    from benchmarks.measure import stopwatch

    def assign() -> dict[str, float]:
        table = prepare()                                # not timed
        with stopwatch() as watch:
            moved = table.rebalance()
        return watch.values(moved=moved)                 # wall_s, cpu_s and a figure of our own

    BENCHMARK = Benchmark(
        name="sharding",                                 # results/sharding.{json,md}; the module's own name
        cases=(
            Case(
                name="rebalance 100,000 shards when one of 1,000 workers leaves",
                variants=(
                    ours(assign),
                    peer("uhashring", Script(SCRIPTS / "uhashring_rebalance.py", requires=("uhashring==2.4",))),
                    floor("numpy copy of the table", lambda: np.arange(100_000).copy()),
                ),
                targets=(
                    Target(metric="wall_s", versus="uhashring", at_most=0.5),     # ours / uhashring ≤ 0.5
                    Target(metric="moved", versus=None, at_most=100),             # an absolute claim about ours
                ),
            ),
        ),
    )

A variant is a callable here, or a `Script` run as a process of its own: with `requires` in a virtualenv of its own
(made on demand; the variant is skipped with the reason when that fails, or when the script says by
`benchmarks.measure.give_up` that its peer does not run here), without in this interpreter. A mapping that a
callable returns, or a script hands to `benchmarks.measure.report`, wins over the wall_s and cpu_s that are taken around
the whole call (for a script that includes the interpreter's start). Metrics are named with their unit: `_s`,
`_bytes`, `_per_s`.

Something that must live through all rounds (a server) belongs to a function: `variants=build`, where
`build(stack: ExitStack)` enters it on the stack and returns the variants; it is closed after the last round.
"""

import gc
import json
import math
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

from benchmarks.measure import REPORT_FILE, UNAVAILABLE, stopwatch
from benchmarks.results import CaseResult, Target, VariantResult, judge
from benchmarks.venvs import PeerUnavailable, PeerVenv, ensure_venv

__all__ = [
    "SCRIPTS",
    "Benchmark",
    "Case",
    "Script",
    "ScriptFailed",
    "Target",
    "Variant",
    "floor",
    "ours",
    "peer",
    "run_case",
]

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = Path(__file__).resolve().parent / "scripts"
"""Where the scripts of variants live, ours and peers alike."""

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Script:
    """A Python file run as its own process, once per round; it hands its figures to `benchmarks.measure.report`."""

    path: Path
    requires: tuple[str, ...] = ()
    args: tuple[str, ...] = ()
    timeout_s: float = 600.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Variant:
    """One way to do the work. `name` is what targets refer to; `label` is what readers see."""

    name: str
    label: str
    run: Callable[[], object] | Script


def ours(run: Callable[[], object] | Script, *, name: str = "ours", label: str = "Strata") -> Variant:
    return Variant(name=name, label=label, run=run)


def peer(name: str, run: Callable[[], object] | Script, *, label: str = "") -> Variant:
    return Variant(name=name, label=label or f"{name} (peer)", run=run)


def floor(label: str, run: Callable[[], object] | Script, *, name: str = "floor") -> Variant:
    """The least that any implementation must do on this machine: a memcpy, a write and fsync, an empty call."""
    return Variant(name=name, label=f"{label} (floor)", run=run)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One measurement: variants that do the same work, and what is claimed about them."""

    name: str
    variants: tuple[Variant, ...] | Callable[[ExitStack], tuple[Variant, ...]]
    targets: tuple[Target, ...] = ()
    repeats: int = 7
    warmups: int = 1

    def __post_init__(self) -> None:
        if self.repeats < 1 or self.warmups < 0:
            raise ValueError(f"{self.name}: repeats={self.repeats} must be ≥ 1, warmups={self.warmups} ≥ 0")


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    """The cases of one module; `packages` are the installed distributions whose versions the result must state;
    `picture` makes an SVG of the results, where one says more than the table."""

    name: str
    cases: tuple[Case, ...]
    packages: tuple[str, ...] = ("numpy",)
    picture: Callable[[Sequence[CaseResult]], str] | None = None


class ScriptFailed(Exception):
    """A variant's script ended badly: a bug in the benchmark, never counted as a skip."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Ready:
    """A variant that can run: its peer's virtualenv is there."""

    variant: Variant
    venv: PeerVenv | None

    def measure(self) -> dict[str, float]:
        run = self.variant.run
        gc.collect()  # garbage of the previous variant must not be collected on this one's time
        with stopwatch() as watch:
            returned = _run_script(run, self.venv) if isinstance(run, Script) else run()
        if isinstance(returned, Mapping):
            return watch.values() | _checked(self.variant.name, returned)
        return watch.values()


def run_case(
    case: Case,
    *,
    repeats: int | None = None,
    only: Collection[str] = (),
    progress: Progress = lambda line: None,
) -> CaseResult:
    """Run every variant once per round and judge the targets. The order rotates, so nobody always goes first. With
    `only`, variants of other names are left out."""
    rounds = repeats or case.repeats
    with ExitStack() as stack:
        variants = case.variants(stack) if callable(case.variants) else case.variants
        _check_names(case, variants)
        ready, skipped = _prepare(variants, only, progress)
        samples: dict[str, list[dict[str, float]]] = {entry.variant.name: [] for entry in ready}
        for number in range(-case.warmups, rounds):
            shift = number % max(len(ready), 1)
            for entry in ready[shift:] + ready[:shift]:
                name = entry.variant.name
                if name in skipped:
                    continue
                try:
                    values = entry.measure()
                except PeerUnavailable as error:
                    skipped[name] = str(error)
                    progress(f"{name}: given up, {error}")
                    continue
                _check_metrics(case.targets, name, values)
                if number >= 0:
                    samples[name].append(values)
            progress(f"{case.name}: {'warm-up' if number < 0 else f'round {number + 1} of {rounds}'}")
    results = {
        variant.name: VariantResult(
            name=variant.name,
            label=variant.label,
            samples=tuple(samples.get(variant.name, ())),
            skipped=skipped.get(variant.name),
            versions=_peer_versions(variant, ready),
        )
        for variant in variants
    }
    outcomes = tuple(judge(target, results) for target in case.targets)
    return CaseResult(name=case.name, variants=tuple(results.values()), outcomes=outcomes)


def _check_names(case: Case, variants: tuple[Variant, ...]) -> None:
    names = [variant.name for variant in variants]
    if len(set(names)) != len(names):
        raise ValueError(f"{case.name}: variant names repeat: {names}")
    for target in case.targets:
        for name in (target.of, target.versus):
            if name is not None and name not in names:
                raise ValueError(f"{case.name}: the target '{target}' names {name!r}, known are {names}")


def _check_metrics(targets: tuple[Target, ...], name: str, values: Mapping[str, float]) -> None:
    """At once, not after the last round: a misspelt metric must not cost the whole run."""
    for target in targets:
        if name in (target.of, target.versus) and target.metric not in values:
            raise ValueError(f"{name} did not report {target.metric} (but {', '.join(values)})")


def _prepare(
    variants: tuple[Variant, ...], only: Collection[str], progress: Progress
) -> tuple[list[_Ready], dict[str, str]]:
    ready: list[_Ready] = []
    skipped: dict[str, str] = {}
    for variant in variants:
        if only and variant.name not in only:
            skipped[variant.name] = "not asked for"
            continue
        requires = variant.run.requires if isinstance(variant.run, Script) else ()
        try:
            if requires:
                progress(f"{variant.name}: virtualenv with {', '.join(requires)}")
            ready.append(_Ready(variant=variant, venv=ensure_venv(requires) if requires else None))
        except PeerUnavailable as error:
            skipped[variant.name] = str(error)
            progress(f"{variant.name}: skipped, {error}")
    return ready, skipped


def _peer_versions(variant: Variant, ready: list[_Ready]) -> dict[str, str]:
    """Versions of what the script asked for by name; what these pulled in stays in the virtualenv's stamp."""
    if not isinstance(variant.run, Script):
        return {}
    installed = next((entry.venv.versions for entry in ready if entry.variant is variant and entry.venv), {})
    wanted = {_normal(re.split(r"[\[<>=!~; ]", requirement)[0]) for requirement in variant.run.requires}
    return {name: version for name, version in sorted(installed.items()) if _normal(name) in wanted}


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _run_script(script: Script, venv: PeerVenv | None) -> Mapping[str, object] | None:
    """Figures that the script reported, or None when it reported nothing and its whole run is the measurement."""
    with tempfile.TemporaryDirectory(prefix="strata-bench-") as folder:
        answer = Path(folder) / "report.json"
        python = str(venv.python) if venv else sys.executable
        env = os.environ | {REPORT_FILE: str(answer), "PYTHONPATH": str(ROOT)}
        try:
            done = subprocess.run(
                [python, str(script.path), *script.args],
                capture_output=True,
                text=True,
                env=env,
                timeout=script.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise ScriptFailed(f"{script.path.name}: no end after {script.timeout_s:g} s") from error
        if done.returncode != 0:
            tail = "\n".join(done.stderr.splitlines()[-15:])
            raise ScriptFailed(f"{script.path.name}: exit code {done.returncode}\n{tail}")
        if not answer.exists():
            return None
        reported: Mapping[str, object] = json.loads(answer.read_text(encoding="utf-8"))
        if UNAVAILABLE in reported:
            raise PeerUnavailable(str(reported[UNAVAILABLE]))
        return reported


def _checked(name: str, values: Mapping[object, object]) -> dict[str, float]:
    checked: dict[str, float] = {}
    for metric, value in values.items():
        if not isinstance(value, int | float) or not math.isfinite(value):
            raise ValueError(f"{name} reported {metric}={value!r}: a metric is a finite number")
        checked[str(metric)] = float(value)
    return checked
