"""What a run leaves behind: JSON and Markdown that carry every figure, target and skip, and no host name."""

import json
import platform
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

from benchmarks.__main__ import load, main, names, run_benchmark
from benchmarks.harness import Benchmark, Case, Target, ours, peer, run_case
from benchmarks.picture import curves, scaling
from benchmarks.report import RunReport, describe_run, format_value, to_json, to_markdown, write
from benchmarks.results import CaseResult, VariantResult, judge


@pytest.fixture(scope="module")
def report() -> RunReport:
    case = Case(
        name="a case",
        variants=(ours(lambda: {"wall_s": 0.002, "sent_bytes": 2048}), peer("them", lambda: {"wall_s": 0.001})),
        targets=(Target(metric="wall_s", versus="them", at_most=1.0),),
        repeats=3,
        warmups=0,
    )
    return describe_run("demo", [run_case(case)], ("numpy", "no-such-package"))


def test_json_holds_samples_spreads_and_verdicts(report: RunReport) -> None:
    document = json.loads(to_json(report))
    case = document["cases"][0]
    assert document["command"] == "python -m benchmarks demo"
    assert document["versions"]["no-such-package"] == "not installed"
    assert case["variants"][0]["metrics"]["wall_s"] == {"median": 0.002, "min": 0.002, "max": 0.002}
    assert len(case["variants"][0]["samples"]) == 3
    assert case["targets"][0]["verdict"] == "miss"
    assert case["targets"][0]["measured"]["median"] == pytest.approx(2.0)


def test_markdown_says_machine_command_numbers_target_and_verdict(report: RunReport) -> None:
    text = to_markdown(report)
    assert "`python -m benchmarks demo`" in text
    assert "cores" in text
    assert "2 ms (2 ms … 2 ms)" in text
    assert "2 KiB" in text
    assert "| wall_s of ours / them ≤ 1 | 2 (2 … 2) | **miss** |" in text


def test_no_host_name_is_written(report: RunReport) -> None:
    assert platform.node() not in to_markdown(report) + to_json(report)


def test_a_skip_shows_its_reason() -> None:
    skipped = VariantResult(name="them", label="them (peer)", skipped="no wheel | for this system", versions={})
    ran = VariantResult(name="ours", label="Strata", samples=({"wall_s": 1.0},), versions={})
    outcome = judge(Target(metric="wall_s", versus="them", at_most=1), {"ours": ran, "them": skipped})
    text = to_markdown(describe_run("demo", [CaseResult(name="c", variants=(ran, skipped), outcomes=(outcome,))], ()))
    assert "| them (peer) | skipped | no wheel \\| for this system |" in text
    assert "**skipped**" in text


def test_both_files_are_written(report: RunReport, tmp_path: Path) -> None:
    write(report, tmp_path / "results")
    assert sorted(path.name for path in (tmp_path / "results").iterdir()) == ["demo.json", "demo.md"]


@pytest.mark.parametrize(
    ("metric", "value", "text"),
    [
        ("wall_s", 1.5, "1.5 s"),
        ("wall_s", 0.0123, "12.3 ms"),
        ("wall_s", 4.2e-6, "4.2 µs"),
        ("wall_s", 0.0, "0 ns"),
        ("sent_bytes", 3 * 2**20, "3 MiB"),
        ("ops_per_s", 21_987.4, "21,987/s"),
        ("moved", 100, "100"),
        ("skew", 0.4321, "0.432"),
    ],
)
def test_figures_carry_the_unit_of_their_name(metric: str, value: float, text: str) -> None:
    assert format_value(metric, value) == text


def test_every_benchmark_module_can_be_loaded() -> None:
    assert [load(name).name for name in names()] == names()
    assert all(isinstance(load(name), Benchmark) for name in names())


def test_an_unknown_variant_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["goodput", "--variants", "in_place,torchrum"])
    assert stopped.value.code == 2
    assert "no variant called torchrum; there are: gang, in_place, ray," in capsys.readouterr().err


def test_a_picture_lies_beside_its_page_and_the_page_shows_it(tmp_path: Path) -> None:
    case = Case(name="c", variants=(ours(lambda: {"share": 0.5}),), repeats=1, warmups=0)
    benchmark = Benchmark(
        name="drawn",
        cases=(case,),
        picture=lambda cases: curves("a < b", "x", "y", {"ours": [(0, 1), (9, 0.5)]}, x_ticks=(0, 9)),
    )
    run_benchmark(benchmark, None, tmp_path, ("ours",))
    page, drawing = (tmp_path / "drawn.md").read_text(), ElementTree.parse(tmp_path / "drawn.svg")  # noqa: S314
    assert "![drawn](drawn.svg)" in page
    assert "`python -m benchmarks drawn --variants ours`" in page
    assert "ours, 50.0%" in {text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")}


def test_labels_of_lines_that_end_together_do_not_cover_each_other() -> None:
    lines = {name: [(0.0, 1.0), (9.0, 0.5)] for name in ("a", "b", "c")}
    drawing = ElementTree.fromstring(curves("t", "x", "y", lines, x_ticks=(0, 9)))  # noqa: S314
    texts = drawing.iter("{http://www.w3.org/2000/svg}text")
    heights = sorted(float(text.attrib["y"]) for text in texts if str(text.text).endswith(", 50.0%"))
    assert len(heights) == 3
    assert min(after - before for before, after in pairwise(heights)) >= 12


def test_times_over_sizes_are_drawn_on_logarithmic_axes() -> None:
    """Ten times as long is as far up, wherever it begins."""
    drawing = ElementTree.fromstring(scaling("t", "x", "y", {"one": [(10.0, 0.001), (100.0, 0.01), (1_000.0, 0.1)]}))  # noqa: S314
    circles = [circle.attrib for circle in drawing.iter("{http://www.w3.org/2000/svg}circle")]
    ups = [float(before["cy"]) - float(after["cy"]) for before, after in pairwise(circles)]
    assert ups[0] == pytest.approx(ups[1], abs=0.2)
    texts = {text.text for text in drawing.iter("{http://www.w3.org/2000/svg}text")}
    assert {"1 ms", "10 ms", "100 ms", "1,000", "one, 100 ms"} <= texts


def test_an_unknown_name_is_refused_with_the_known_ones(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["no-such-benchmark"])
    assert stopped.value.code == 2
    assert "no benchmark called no-such-benchmark; there are:" in capsys.readouterr().err


def test_a_missed_target_is_named_and_a_near_one_is_not(tmp_path: Path) -> None:
    case = Case(
        name="slow",
        variants=(
            ours(lambda: {"wall_s": 2.0}),
            peer("fast", lambda: {"wall_s": 1.0}),
            peer("even", lambda: {"wall_s": 1.8}),
        ),
        targets=(
            Target(metric="wall_s", versus="fast", at_most=1.0),
            Target(metric="wall_s", versus="even", at_most=1.0),
        ),
        repeats=1,
        warmups=0,
    )
    missed = run_benchmark(Benchmark(name="slow", cases=(case,)), None, tmp_path)
    assert missed == ["slow: wall_s of ours / fast ≤ 1, measured 2"]
    assert "**near**" in (tmp_path / "slow.md").read_text(encoding="utf-8")
