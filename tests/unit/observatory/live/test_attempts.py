"""Which attempt a step belongs to: what is superseded, what is refused, and where an attempt begins."""

import numpy as np
import pytest

from strata.observatory.batch.columns import Columns, to_columns
from strata.observatory.ingest.points import from_json
from strata.observatory.live.attempts import AttemptBook
from strata.observatory.live.series import SeriesTable
from strata.protocol.generated.telemetry_pb2 import AttemptStart, LogLine
from strata.types.metrics import WORLDS, attempt_tags, turn_of


def _points(attempt: int, steps: list[int], at_ms: int, *, world: int = 0, host: str = "a") -> Columns:
    tags = attempt_tags(attempt, world)
    points = [{"metric": "loss", "step": step, "value": 1.0, "host": host, "tags": tags} for step in steps]
    return to_columns(from_json("r", {"points": points}, at_ms))


class World:
    def __init__(self) -> None:
        self.book = AttemptBook(SeriesTable())

    def log(self, columns: Columns) -> list[int]:
        """Takes them as the observatory does; the steps that were refused."""
        verdict = self.book.judge(columns)
        if verdict is None:
            return []
        self.book.begin(verdict.starts)
        refused: list[int] = columns.steps[verdict.refused].tolist()
        return refused

    def hidden(self, columns: Columns) -> list[int]:
        mask = self.book.hidden(columns)
        steps: list[int] = [] if mask is None else columns.steps[mask].tolist()
        return steps

    def begin(self, attempt: int, step: int | None, at_ms: int = 100) -> None:
        start = AttemptStart(run_id="r", attempt=attempt, event_time_ms=at_ms)
        if step is not None:
            start.step = step
        self.book.begin([start])


def test_tags_and_turns() -> None:
    assert turn_of(attempt_tags(2)) == 2 * WORLDS
    assert turn_of(attempt_tags(2, 3)) == 2 * WORLDS + 3
    assert turn_of(attempt_tags(0)) == turn_of("") == turn_of("no JSON") == 0
    for odd in ("0", "-1", "NaN", '"2"', "1e3x", str(2**70)):
        assert turn_of(f'{{"strata_attempt":{odd}}}') in (0, WORLDS), odd
    assert turn_of('{"strata_attempt":0,"strata_world":3}') == 0


def test_the_first_point_of_an_attempt_supersedes_what_lies_there_and_beyond() -> None:
    world = World()
    assert world.log(_points(1, [1, 2, 3, 4], 10)) == []
    assert world.log(_points(2, [3, 4], 100)) == []
    assert world.hidden(_points(1, [1, 2, 3, 4, 9], 10)) == [3, 4, 9]
    assert world.hidden(_points(2, [1, 9], 100)) == []
    assert world.hidden(_points(0, [1, 9], 100)) == [], "who names no attempt is superseded by none"
    assert world.log(_points(1, [2, 3, 9], 101)) == [3, 9], "measured after attempt 2 began"
    assert world.log(_points(1, [2, 3, 9], 99)) == [], "measured before, and late on its way"


def test_a_step_that_goes_back_within_an_attempt_supersedes_nothing() -> None:
    world = World()
    world.log(_points(1, [1, 2, 3], 10))
    world.log(_points(2, [3], 100))
    world.log(_points(2, [0, 1], 110))
    assert world.hidden(_points(1, [1, 2, 3], 10)) == [3]


def test_the_coordinator_says_where_an_attempt_begins_before_it_logs() -> None:
    world = World()
    world.log(_points(1, [1, 2, 3, 4], 10))
    world.begin(2, 3)
    assert world.hidden(_points(1, [2, 3], 10)) == [3]
    verdict = world.book.judge(_points(2, [3], 110))
    assert verdict is not None
    assert verdict.starts == [], "the run's record says as much"
    assert world.book.judge(_points(2, [4], 111)) is None
    verdict = world.book.judge(_points(2, [2], 112))
    assert verdict is None, "its first point is known"


def test_the_first_point_may_lie_before_the_checkpoint_that_the_coordinator_names() -> None:
    world = World()
    world.begin(2, 30)
    world.log(_points(2, [20], 110))
    assert world.hidden(_points(1, [19, 20], 10)) == [20]


def test_an_attempt_of_which_nobody_knows_where_it_begins_supersedes_by_its_points_alone() -> None:
    world = World()
    world.begin(2, None)
    assert world.hidden(_points(1, [1], 10)) == []
    assert not world.book.is_fenced("r")
    world.log(_points(2, [1], 110))
    assert world.hidden(_points(1, [1], 10)) == [1]
    assert world.book.is_fenced("r")


def test_a_rank_that_moved_to_another_host_supersedes_itself() -> None:
    world = World()
    world.log(_points(1, [1, 2], 10, host="a"))
    world.log(_points(2, [2], 100, host="b"))
    assert world.hidden(_points(1, [1, 2], 10, host="a")) == [2]


def test_a_rank_replaced_in_place_supersedes_within_its_attempt() -> None:
    world = World()
    world.log(_points(1, [1, 2, 3], 10))
    world.log(_points(1, [3], 100, world=1))
    assert world.hidden(_points(1, [2, 3], 10)) == [3]
    world.log(_points(2, [1], 200))
    assert world.hidden(_points(1, [3], 100, world=1)) == [3]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_three_attempts_in_any_order_of_arrival(order: tuple[int, ...]) -> None:
    first = {1: 0, 2: 10, 3: 5}
    world = World()
    for attempt in order:
        world.log(_points(attempt, [first[attempt]], attempt * 10))
    assert world.hidden(_points(1, [4, 5, 9, 10], 10)) == [5, 9, 10]
    assert world.hidden(_points(2, [4, 5, 10, 11], 20)) == [5, 10, 11]
    assert world.hidden(_points(3, [0, 99], 30)) == []


def test_ten_thousand_series_begin_again_at_once() -> None:
    tags = attempt_tags(2)
    points = [{"metric": f"m{number}", "step": 7, "value": 1.0, "tags": tags} for number in range(10_000)]
    columns = to_columns(from_json("r", {"points": points}, 100))
    world = World()
    world.log(columns)
    assert world.book.judge(columns) is not None, "begun a moment ago: looked at once more"
    assert world.book.judge(columns) is None
    older = [{**point, "tags": attempt_tags(1)} for point in points]
    mask = world.book.hidden(to_columns(from_json("r", {"points": older}, 10)))
    assert mask is not None
    assert np.all(mask)


def test_lines_that_a_rank_logged_after_its_successor_began_are_late() -> None:
    world = World()
    world.begin(2, 3, at_ms=100)

    def late(stream: str, attempt: int, at_ms: int) -> bool:
        line = LogLine(task_id="r", attempt=attempt, source="worker", stream=stream, event_time_ms=at_ms)
        return world.book.is_late(line)

    assert late("log", 1, 101)
    assert not late("log", 1, 99)
    assert not late("log", 2, 101)
    assert not late("stderr", 1, 101), "its last words, read by the agent when it came to it"


def test_a_deleted_run_is_forgotten() -> None:
    world = World()
    world.log(_points(1, [1], 10))
    world.log(_points(2, [1], 100))
    world.book.forget("r")
    assert world.hidden(_points(1, [1], 10)) == []
    assert not world.book.is_fenced("r")
