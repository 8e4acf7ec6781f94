"""Who may delete a run, and what stays of a batch that is partly of deleted runs."""

import pytest

from strata.clock import ManualClock
from strata.observatory.answers.runs import RunInfo
from strata.observatory.batch.columns import to_columns
from strata.observatory.batch.strip import strip_runs
from strata.observatory.history.edits import why_not_deletable
from strata.observatory.live.runs import RunBook
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.types.metrics import RunState
from tests.support.answers import partly


@pytest.mark.parametrize(
    ("state", "task_status", "deletable"),
    [
        (RunState.RUNNING, None, False),
        (RunState.FINISHED, None, True),
        (RunState.FAILED, "failed", True),
        (RunState.KILLED, "stopped", True),
        (RunState.LOST, None, True),
        (RunState.FINISHED, "running", False),
        (RunState.LOST, "recovering", False),
        (RunState.LOST, "stopping", False),
    ],
)
def test_only_what_is_over_can_be_deleted(state: RunState, task_status: str | None, deletable: bool) -> None:
    why_not = why_not_deletable(partly(RunInfo, run_id="r1", is_active=state is RunState.RUNNING), task_status)
    assert (why_not is None) == deletable
    assert deletable or "'r1'" in str(why_not)


def mixed() -> Batch:
    """Series are numbered as a sender likes; points of both runs alternate."""
    batch = Batch(batch_id="b1")
    for index, run_id in ((7, "gone"), (3, "kept"), (5, "gone")):
        batch.series.add(index=index, run_id=run_id, metric=f"m{index}", device=65535)
    for step, index in enumerate((7, 3, 5, 3, 7)):
        batch.points.series.append(index)
        batch.points.step.append(step)
        batch.points.event_time_ms.append(1_000 + step)
        batch.points.value.append(step / 2)
    batch.runs.add(run_id="gone", name="a")
    batch.runs.add(run_id="kept", name="b")
    batch.logs.add(event_time_ms=1, level="info", message="of the task", task_id="gone")
    return batch


def test_a_batch_loses_exactly_the_deleted_runs() -> None:
    message = mixed()
    assert to_columns(message).is_of({"gone"})
    assert not to_columns(message).is_of({"other"})
    assert strip_runs(message, {"gone"}) == 3
    columns = to_columns(message)
    assert [head.key.run_id for head in columns.heads] == ["kept"]
    assert columns.steps.tolist() == [1, 3]
    assert columns.values.tolist() == [0.5, 1.5]
    assert [run.run_id for run in columns.runs] == ["kept"]
    assert len(columns.logs) == 1, "logs are the task's"


def test_columns_on_their_way_lose_them_too() -> None:
    columns = to_columns(mixed())
    left = columns.without({"gone"})
    assert left.steps.tolist() == [1, 3]
    assert {left.heads[at].key.run_id for at in left.series} == {"kept"}
    assert [run.run_id for run in left.runs] == ["kept"]
    assert columns.without({"other"}) is columns


def test_a_deleted_run_stays_unknown_whoever_speaks_of_it() -> None:
    book = RunBook(ManualClock())
    book.seen("r1", 1, 2, 3, 4)
    book.edit("r1", {"name": "by hand", "notes": "n"})
    book.describe("r1", {"name": "by its owner"}, "")
    shown = book.info("r1")
    assert shown is not None
    assert (shown.name, shown.notes) == ("by hand", "n"), "people's word wins"
    book.edit("r1", {"name": ""})
    again = book.info("r1")
    assert again is not None
    assert again.name == "by its owner"
    book.delete("r1")
    book.seen("r1", 1, 2, 3, 4)
    book.set_series("r1", 2)
    book.describe("r1", {"name": "n"}, "{}")
    book.from_store([{"run_id": "r1", "first_ms": 1, "last_ms": 2, "top_step": 3, "points": 4, "series": 1}])
    book.edit("r1", {"name": "x"})
    assert "r1" not in book
    assert book.all() == []
