"""results/README.md: every goal in one table, judged anew from the results that are there."""

from pathlib import Path

import pytest

from benchmarks.__main__ import main
from benchmarks.harness import Benchmark, Case, Target, floor, ours, peer, run_case
from benchmarks.report import describe_run, read, write
from benchmarks.table import find_faults, render, write_table


def benchmark(*targets: Target, name: str = "demo") -> Benchmark:
    variants = (
        ours(lambda: {"wall_s": 0.004, "rows_per_s": 10}),
        floor("a copy", lambda: {"wall_s": 0.001}),
        peer("them", lambda: {"wall_s": 0.002}),
    )
    return Benchmark(name=name, cases=(Case(name="c", variants=variants, targets=targets, repeats=3, warmups=0),))


def measured(known: Benchmark, folder: Path) -> Benchmark:
    write(describe_run(known.name, [run_case(case) for case in known.cases], ()), folder)
    return known


def rows(*known: Benchmark, folder: Path) -> list[list[str]]:
    lines = [line for line in render(known, folder).splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in line.strip("|").split("|")][:6] for line in lines[1:]]


def test_a_row_has_ours_the_other_the_ratio_the_goal_and_whether_it_is_met(tmp_path: Path) -> None:
    known = benchmark(
        Target(metric="wall_s", versus="them", at_most=1.5, work="against a peer", profile="all of it is the disk."),
        Target(metric="wall_s", versus=None, at_most=0.010, work="for itself"),
        Target(metric="wall_s", versus=None, at_most=0.0038, work="nearly"),
        Target(metric="rows_per_s", versus=None, at_least=5, work="no floor for it"),
        Target(metric="wall_s", versus="floor", at_most=9),
    )
    assert rows(measured(known, tmp_path), folder=tmp_path) == [
        ["against a peer", "4 ms", "2 ms, them (peer)", "2×", "≤ 1.5×", "**no**"],
        ["for itself", "4 ms", "1 ms, a copy (floor)", "4×", "≤ 10 ms", "yes"],
        ["nearly", "4 ms", "1 ms, a copy (floor)", "4×", "≤ 3.8 ms", "near"],
        ["no floor for it", "10/s", "", "", "≥ 5/s", "yes"],
    ]
    page = render([known], tmp_path)
    assert "- **against a peer** (≤ 1.5×): all of it is the disk.\n" in page
    assert "- **nearly** (≤ 3.8 ms): not looked into yet.\n" in page
    assert "**for itself**" not in page


def test_what_has_no_result_says_so(tmp_path: Path) -> None:
    """No file, a case that is new, a variant that is new or was skipped, a metric that is new."""
    measured(benchmark(name="known"), tmp_path)
    (case,) = benchmark().cases
    new_case = Case(
        name="later", variants=case.variants, targets=(Target(metric="wall_s", versus=None, at_most=1, work="a"),)
    )
    known = Benchmark(name="known", cases=(new_case,))
    new_target = benchmark(Target(metric="p99_s", versus=None, at_most=1, work="b"), name="known")
    new_side = benchmark(Target(metric="wall_s", versus="nobody", at_most=1, work="c"), name="known")
    never = benchmark(Target(metric="wall_s", versus=None, at_most=1, work="d"), name="never")
    found = rows(known, new_target, new_side, never, folder=tmp_path)
    assert [(row[0], row[5]) for row in found] == [(name, "not measured") for name in "abcd"]


def test_a_result_is_read_back_as_it_was_written(tmp_path: Path) -> None:
    known = measured(benchmark(Target(metric="wall_s", versus=None, at_most=1, work="a")), tmp_path)
    found = read(tmp_path / "demo.json")
    assert found is not None
    assert [one.name for one in found.cases[0].variants] == ["ours", "floor", "them"]
    assert found.cases[0].variants[0].values("wall_s") == [0.004] * 3
    assert found.name == known.name
    assert read(tmp_path / "nothing.json") is None


def test_a_run_leaves_a_page_that_is_current(tmp_path: Path) -> None:
    known = measured(benchmark(Target(metric="wall_s", versus=None, at_most=1, work="a")), tmp_path)
    assert find_faults([known], tmp_path) == ["README.md is out of date: run `python -m benchmarks table`"]
    write_table([known], tmp_path)
    assert find_faults([known], tmp_path) == []
    (tmp_path / "demo.json").unlink()
    assert find_faults([known], tmp_path) != []


def test_a_miss_without_a_sentence_is_a_fault(tmp_path: Path) -> None:
    known = measured(benchmark(Target(metric="wall_s", versus=None, at_most=0.001, work="a")), tmp_path)
    write_table([known], tmp_path)
    assert find_faults([known], tmp_path) == ["demo: say in `profile` of its target what profiling says of 'a'"]


def test_the_page_of_this_repository_is_current(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "--check"]) == 0, capsys.readouterr().err
