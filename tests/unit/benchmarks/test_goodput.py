"""The arithmetic of the goodput benchmark: from the lines that ranks wrote to steps, waits and samples."""

from pathlib import Path

import pytest

from benchmarks.scripts.goodput_drive import schedule
from benchmarks.scripts.goodput_ledger import Ledger, Line, Samples, read, share

RANKS = 2


def lines(*steps: tuple[float, int], missing: int | None = None) -> list[Line]:
    """Each step by both ranks, half a second long, from the moment that is given; `missing` put nothing into it."""
    made, total, totals = [], 0, {0: 0}
    for began, step in steps:
        entered = tuple(0 if rank == missing else step for rank in range(RANKS))
        total = totals[step] = totals[step - 1] + sum(entered)  # a step that is done again starts from the one before
        made += [
            Line(began=began, ended=began + 0.5, rank=rank, step=step, entered=entered, total=total)
            for rank in range(RANKS)
        ]
    return made


def ledger(*made: Line) -> Ledger:
    return Ledger(lines=tuple(sorted(made, key=lambda line: line.ended)), pids={})


CALM = ledger(*lines((10.0, 1), (10.5, 2), (11.0, 3), (11.5, 4)))
BACK = ledger(*lines((10.0, 1), (10.5, 2), (11.0, 3), (20.0, 2), (20.5, 3), (21.0, 4)))  # killed at 11.6


def test_the_position_is_what_a_moment_has_left_to_later_ones() -> None:
    assert CALM.position(10.2) == 1
    assert CALM.position(11.5) == 3
    assert BACK.position(11.0) == 2
    assert BACK.position(15.0) == 1, "the kill before that moment has undone two steps"


def test_the_pace_counts_what_is_left_of_the_steps() -> None:
    assert CALM.pace((10.0, 11.0)) == 2.0
    assert CALM.pace((10.0, 10.5), (11.0, 11.5)) == 2.0
    assert BACK.pace((10.0, 20.0)) == pytest.approx(0.1), "of three steps two were undone"


def test_a_kill_costs_what_is_missing_after_it() -> None:
    even = ledger(*lines(*((float(second), second + 1) for second in range(11))))
    assert even.cost(5.0, 4.0) == pytest.approx(0.0)
    late = ledger(*lines(*((second + (2.0 if second >= 5 else 0.0), second + 1) for second in range(11))))
    assert late.cost(5.0, 4.0) == pytest.approx(2.0)


def test_the_next_step_is_one_that_began_after_the_moment() -> None:
    assert CALM.next_step(10.4) == pytest.approx(0.6), "not the step that ends 0.1 s later"
    assert BACK.next_step(11.6) == pytest.approx(8.9)
    assert CALM.next_step(12.0) is None


def test_steps_that_are_done_again_are_counted_each_time() -> None:
    assert CALM.redone() == 0
    assert BACK.redone() == 2


def test_samples_of_a_step_that_was_done_again_are_in_the_state_once() -> None:
    assert BACK.samples() == Samples(lost=0, doubled=0)


def test_a_step_without_one_of_the_ranks_has_lost_its_samples() -> None:
    assert ledger(*lines((10.0, 1), (10.5, 2), missing=1)).samples() == Samples(lost=2, doubled=0)


def test_samples_of_another_step_are_doubled_and_those_of_this_one_lost() -> None:
    first, again = Line(began=0, ended=1, rank=0, step=1, entered=(1, 1), total=2), (2, 1)
    second = Line(began=1, ended=2, rank=0, step=2, entered=again, total=5)
    assert ledger(first, second).samples() == Samples(lost=1, doubled=1)


def test_a_state_that_disagrees_with_the_ledger_is_no_figure() -> None:
    with pytest.raises(ValueError, match="the ledger adds up to 2, the state after step 1 to 4"):
        ledger(Line(began=0, ended=1, rank=0, step=1, entered=(1, 1), total=4)).samples()


def test_the_file_gives_back_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "ledger"
    assert read(path) == Ledger(lines=(), pids={})
    path.write_text("rank 0 17\nrank 1 18\n" + "".join(map(str, BACK.lines)) + "rank 1 19\n")
    found = read(path)
    assert found.pids == {0: 17, 1: 19}
    assert found.lines == BACK.lines


def test_a_share_is_one_of_the_values() -> None:
    assert share([3.0, 1.0, 2.0], 0.5) == 2.0
    assert share([float(value) for value in range(1, 101)], 0.95) == 95.0
    assert share([1.0, 2.0], 0.95) == 2.0


@pytest.mark.parametrize("every", [60, 30, 10])
def test_every_system_meets_the_same_kills(every: int) -> None:
    kills = list(schedule(every, 60))
    assert kills == list(schedule(every, 60))
    assert len(kills) == 60 // every
    for number, (moment, rank) in enumerate(kills):
        assert number * every < moment < (number + 0.5) * every
        assert rank in range(4)
