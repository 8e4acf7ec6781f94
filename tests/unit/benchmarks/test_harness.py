"""The harness itself: interleaving, scripts in their own process, skips with a reason, what a variant reports."""

from contextlib import ExitStack
from pathlib import Path

import pytest

from benchmarks.harness import Case, Script, ScriptFailed, Target, Variant, floor, ours, peer, run_case
from benchmarks.measure import stopwatch
from benchmarks.results import Verdict


def test_variants_are_interleaved_and_the_order_rotates() -> None:
    calls: list[str] = []
    case = Case(
        name="order",
        variants=(ours(lambda: calls.append("a")), peer("b", lambda: calls.append("b"))),
        repeats=2,
        warmups=1,
    )
    result = run_case(case)
    assert calls == ["b", "a", "a", "b", "b", "a"]
    assert [len(variant.samples) for variant in result.variants] == [2, 2]


def test_wall_and_cpu_time_are_taken_when_a_variant_reports_nothing() -> None:
    result = run_case(Case(name="busy", variants=(ours(lambda: sum(range(200_000))),), repeats=1, warmups=0))
    sample = result.variants[0].samples[0]
    assert sample["wall_s"] > 0
    assert sample["cpu_s"] > 0


def test_what_a_variant_reports_wins_and_stands_beside_the_times() -> None:
    def work() -> dict[str, float]:
        with stopwatch() as watch:
            pass
        return watch.values(ops_per_s=5_000) | {"wall_s": 42.0}

    sample = run_case(Case(name="own", variants=(ours(work),), repeats=1, warmups=0)).variants[0].samples[0]
    assert sample["wall_s"] == 42.0
    assert sample["ops_per_s"] == 5_000


def test_a_metric_that_is_no_number_is_refused_by_name() -> None:
    case = Case(name="bad", variants=(ours(lambda: {"wall_s": "fast"}),), repeats=1, warmups=0)
    with pytest.raises(ValueError, match="ours reported wall_s='fast'"):
        run_case(case)


def test_repeats_can_be_overridden_for_a_quick_look() -> None:
    case = Case(name="quick", variants=(ours(lambda: None),), repeats=50, warmups=0)
    assert len(run_case(case, repeats=1).variants[0].samples) == 1


def test_what_lives_through_all_rounds_is_closed_after_the_last() -> None:
    log: list[str] = []

    def build(stack: ExitStack) -> tuple[Variant, ...]:
        log.append("open")
        stack.callback(log.append, "close")
        return (ours(lambda: log.append("run")),)

    run_case(Case(name="server", variants=build, repeats=2, warmups=0))
    assert log == ["open", "run", "run", "close"]


def test_a_script_runs_in_its_own_process_and_reports_its_figures(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text(
        "import sys\nfrom benchmarks.measure import report\nprint('noise')\nreport({'p99_s': float(sys.argv[1])})\n"
    )
    result = run_case(Case(name="script", variants=(peer("p", Script(script, args=("0.25",))),), repeats=1, warmups=0))
    assert result.variants[0].samples[0]["p99_s"] == 0.25


def test_a_script_that_reports_nothing_is_timed_as_a_whole(tmp_path: Path) -> None:
    script = tmp_path / "silent.py"
    script.write_text("sum(range(1_000_000))\n")
    sample = run_case(Case(name="whole", variants=(ours(Script(script)),), repeats=1, warmups=0)).variants[0].samples[0]
    assert sample["cpu_s"] > 0
    assert sample["wall_s"] > 0.005  # an interpreter cannot start faster


def test_a_script_that_fails_is_an_error_with_its_last_words(tmp_path: Path) -> None:
    script = tmp_path / "broken.py"
    script.write_text("raise SystemExit('no such luck')\n")
    with pytest.raises(ScriptFailed, match=r"(?s)broken.py: exit code 1.*no such luck"):
        run_case(Case(name="broken", variants=(ours(Script(script)),), repeats=1, warmups=0))


@pytest.mark.slow
def test_a_peer_that_cannot_install_is_skipped_with_the_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A real virtualenv and a real pip, told to use no index, so no network is needed."""
    monkeypatch.setenv("STRATA_BENCH_VENVS", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.delenv("PIP_FIND_LINKS", raising=False)
    case = Case(
        name="skip",
        variants=(ours(lambda: None), peer("gone", Script(tmp_path / "x.py", requires=("no-such-peer==1",)))),
        targets=(Target(metric="wall_s", versus="gone", at_most=1.0),),
        repeats=1,
        warmups=0,
    )
    result = run_case(case)
    skipped = result.variants[1]
    assert skipped.skipped is not None
    assert "no-such-peer" in skipped.skipped
    assert result.variants[0].samples
    assert result.outcomes[0].verdict is Verdict.SKIPPED
    assert "no-such-peer" in result.outcomes[0].reason


def test_a_target_must_name_known_variants() -> None:
    case = Case(
        name="typo",
        variants=(ours(lambda: None), floor("nothing", lambda: None)),
        targets=(Target(metric="wall_s", versus="flor", at_most=1),),
    )
    with pytest.raises(ValueError, match="'flor', known are"):
        run_case(case)


def test_a_metric_that_a_target_needs_is_missed_at_once() -> None:
    calls: list[int] = []
    case = Case(
        name="typo",
        variants=(ours(lambda: calls.append(1)),),
        targets=(Target(metric="p99_s", versus=None, at_most=1),),
    )
    with pytest.raises(ValueError, match=r"ours did not report p99_s \(but wall_s, cpu_s\)"):
        run_case(case)
    assert len(calls) == 1


def test_variant_names_must_differ() -> None:
    with pytest.raises(ValueError, match="names repeat"):
        run_case(Case(name="twins", variants=(ours(lambda: None), ours(lambda: None))))


def test_a_case_needs_at_least_one_round() -> None:
    with pytest.raises(ValueError, match="repeats=0"):
        Case(name="none", variants=(), repeats=0)


def test_variants_that_were_not_asked_for_do_not_run() -> None:
    calls: list[str] = []
    case = Case(
        name="part",
        variants=(ours(lambda: calls.append("ours")), peer("them", lambda: calls.append("them"))),
        targets=(Target(metric="wall_s", versus="them", at_most=1.0),),
        repeats=1,
        warmups=0,
    )
    result = run_case(case, only=("ours",))
    assert calls == ["ours"]
    assert result.variants[1].skipped == "not asked for"
    assert result.outcomes[0].verdict is Verdict.SKIPPED


def test_a_peer_that_does_not_run_here_is_skipped_with_its_own_reason(tmp_path: Path) -> None:
    script = tmp_path / "peer.py"
    script.write_text("from benchmarks.measure import give_up\ngive_up('no quorum')\n")
    result = run_case(Case(name="gone", variants=(ours(lambda: None), peer("them", Script(script))), repeats=2))
    assert len(result.variants[0].samples) == 2
    assert result.variants[1].skipped == "no quorum"
    assert result.variants[1].samples == ()
