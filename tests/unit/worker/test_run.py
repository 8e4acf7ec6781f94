"""A run with no server at all: it never blocks, never raises, and keeps everything for `strata sync`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from strata.worker import run as runs
from strata.worker.log_handler import LogHandler
from strata.worker.run import Run, init
from tests.support.offline import kept_batches, kept_points


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    run = init(project="vision", name="resnet50", config={"lr": 1e-3})
    yield run
    run.finish()


def test_an_offline_run_keeps_points_config_and_its_end(run: Run) -> None:
    run.log({"loss": 0.5, "lr": 1}, step=1)
    run.log({"loss": 0.25})
    assert run.finish() is False
    assert run.finish() is True
    assert kept_points(run) == [("loss", 1, 0.5), ("lr", 1, 1.0), ("loss", 2, 0.25)]
    told = [info for batch in kept_batches(run) for info in batch.runs]
    assert [(info.project, info.name, info.status) for info in told] == [
        ("vision", "resnet50", "running"),
        ("vision", "resnet50", "finished"),
    ]
    assert told[0].config_json == '{"lr": 0.001}'


def test_who_it_is_is_said_before_any_point(run: Run) -> None:
    """A process that stops between the two would leave a run of which nobody knows whose it is, or that it died."""
    run.log({"loss": 0.5}, step=1)
    run.reporter.secure()
    first, *others = kept_batches(run)
    assert [info.status for info in first.runs] == ["running"]
    assert not first.points.value
    assert [value for batch in others for value in batch.points.value] == [0.5]


@pytest.mark.parametrize(
    "bad", [{"": 1.0}, {"loss": object()}, {7: 1.0}, {"x" * 300: 1.0}, None, 5, {"loss": b"bytes"}]
)
def test_nothing_that_is_logged_can_raise(run: Run, bad: Any) -> None:
    run.log(bad, step=1)
    run.log({"loss": 1.0}, step=-1)
    run.log({"ok": 2.0}, step=2)
    run.finish()
    assert kept_points(run) == [("ok", 2, 2.0)]
    assert sum(batch.dropped_points for batch in kept_batches(run)) >= 2


def test_a_second_init_is_the_same_run(run: Run) -> None:
    assert init(name="other") is run


def test_a_reused_dict_is_noted_as_it_was(run: Run) -> None:
    values = {"loss": 1.0}
    for step in range(3):
        values["loss"] = float(step)
        run.log(values, step=step)
    run.finish()
    assert [value for _, _, value in kept_points(run)] == [0.0, 1.0, 2.0]


def test_alone_there_is_nobody_to_wait_for(run: Run) -> None:
    assert runs.barrier("epoch-0") is None
    assert runs.should_stop() is False
    with runs.section("eval"):
        runs.log({"loss": 1.0}, step=1)


def test_log_records_become_lines(run: Run) -> None:
    import logging

    logger = logging.getLogger("user.script")
    handler = LogHandler(run)
    logger.addHandler(handler)
    logger.warning("watch %s", "out")
    logger.removeHandler(handler)
    run.finish()
    lines = [line for batch in kept_batches(run) for line in batch.logs]
    assert [(line.level, line.message, line.source) for line in lines] == [("warn", "watch out", "worker")]
