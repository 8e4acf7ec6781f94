"""`python -m benchmarks [NAME …]`: runs benchmarks, writes results and their table, exits 1 when a target is missed.
`python -m benchmarks table` writes the table alone.
"""

import argparse
import importlib
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.harness import Benchmark, run_case
from benchmarks.report import describe_run, to_markdown, write
from benchmarks.table import find_faults, write_table

HERE = Path(__file__).resolve().parent
INSTRUMENT = {"__init__", "__main__", "harness", "measure", "picture", "report", "results", "table", "venvs"}
TABLE = "table"


def names(folder: Path = HERE) -> list[str]:
    """Every module beside the instrument's own is a benchmark."""
    return sorted(path.stem for path in folder.glob("*.py") if path.stem not in INSTRUMENT)


def load(name: str) -> Benchmark:
    benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    if not isinstance(benchmark, Benchmark) or benchmark.name != name:
        raise TypeError(f"benchmarks/{name}.py must define BENCHMARK = Benchmark(name={name!r}, …)")
    return benchmark


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("names", nargs="*", help="which ones; all when none is named")
    parser.add_argument("--list", action="store_true", help="list the benchmarks and their cases, run nothing")
    parser.add_argument("--repeats", type=int, help="rounds per case, instead of what each case asks for")
    parser.add_argument("--variants", help="only these, by name, with commas between; others count as skipped")
    parser.add_argument("--results", type=Path, default=HERE / "results", help="folder for the reports")
    parser.add_argument(
        "--check", action="store_true", help="with `table`: write nothing, exit 1 when it is not in order"
    )
    options = parser.parse_args(argv)
    if options.names == [TABLE]:
        return _table(options.results, check=options.check)
    unknown = sorted(set(options.names) - set(names()))
    if unknown:
        parser.error(f"no benchmark called {', '.join(unknown)}; there are: {', '.join(names()) or 'none'}")
    wanted = options.names or names()
    if options.list:
        _list(wanted)
        return 0
    only = tuple(options.variants.split(",")) if options.variants else ()
    strange = sorted({*only} - _variants(wanted))
    if strange:
        parser.error(f"no variant called {', '.join(strange)}; there are: {', '.join(sorted(_variants(wanted)))}")
    missed = [line for name in wanted for line in run_benchmark(load(name), options.repeats, options.results, only)]
    write_table([load(name) for name in names()], options.results)
    for line in missed:
        print(f"MISSED {line}", file=sys.stderr)
    return 1 if missed else 0


def _table(folder: Path, *, check: bool) -> int:
    every = [load(name) for name in names()]
    if not check:
        write_table(every, folder)
        return 0
    faults = find_faults(every, folder)
    for fault in faults:
        print(f"benchmarks/results: {fault}", file=sys.stderr)
    return 1 if faults else 0


def _list(wanted: Sequence[str]) -> None:
    for name in wanted:
        print(name)
        for case in load(name).cases:
            print(f"  {case.name}")


def _variants(wanted: Sequence[str]) -> set[str]:
    """Names that can be asked for. What a case starts for all its rounds is known only when it has started it."""
    cases = [case for name in wanted for case in load(name).cases]
    return {variant.name for case in cases if not callable(case.variants) for variant in case.variants}


def run_benchmark(benchmark: Benchmark, repeats: int | None, folder: Path, only: Sequence[str] = ()) -> list[str]:
    """Run, write and print one benchmark; one line per target that was missed by more than the tolerance."""
    cases = [run_case(case, repeats=repeats, only=only, progress=_show) for case in benchmark.cases]
    picture = benchmark.picture(cases) if benchmark.picture else ""
    report = describe_run(benchmark.name, cases, benchmark.packages, only=only, picture=picture)
    write(report, folder)
    print(to_markdown(report))
    return [
        f"{benchmark.name}: {outcome.target}, measured {outcome.measured.median:.3g}"
        for outcome in report.missed
        if outcome.measured
    ]


def _show(line: str) -> None:
    print(f"  {line}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
