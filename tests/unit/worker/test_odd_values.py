"""Whatever a script hands to `run.log`: it is kept as it is, or counted and said with its name and the reason, once."""

import logging
import multiprocessing
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata.worker.run import Run, init
from tests.support.offline import kept_batches, kept_points


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    run = init(name="odd")
    yield run
    run.finish()


class _Eager:
    """As TensorFlow's tensors: no `item`, and float() of one element is refused."""

    def __init__(self, values: list[float]) -> None:
        self._values = values

    def numpy(self) -> Any:
        return np.array(self._values)


KEPT: dict[str, tuple[Any, float]] = {
    "int": (3, 3.0),
    "bool": (True, 1.0),
    "big": (2**70, float(2**70)),
    "inf": (float("inf"), float("inf")),
    "numpy scalar": (np.float32(0.5), 0.5),
    "numpy int": (np.int64(7), 7.0),
    "0-d array": (np.array(2.5), 2.5),
    "one element": (np.array([[4.0]]), 4.0),
    "tensorflow's": (_Eager([6.0]), 6.0),
}
TEXTS: dict[str, tuple[Any, str, str]] = {
    "text": ("high", "text", "high"),
    "digits": ("3.5", "text", "3.5"),
    "surrogate": ("a\ud800b", "text", "a?b"),
    "list": ([1.0, "two", None], "json", '[1.0, "two", null]'),
    "list of one": ([1.0], "json", "[1.0]"),
    "tuple of arrays": ((np.float32(0.5), np.array([1, 2])), "json", "[0.5, [1, 2]]"),
    "two": (np.array([1.0, 2.0]), "json", "[1.0, 2.0]"),
}
_ITSELF: list[Any] = []
_ITSELF.append(_ITSELF)
REFUSED: dict[str, Any] = {
    "none": None,
    "bytes": b"1",
    "complex": 1j,
    "long list": [0.0] * 5_001,
    "large array": np.zeros(5_001),
    "itself": _ITSELF,
    "object": object(),
    "huge": 10**400,
    "class": int,
}


@pytest.mark.parametrize("case", KEPT)
def test_numbers_of_every_kind_are_kept(run: Run, case: str) -> None:
    value, expected = KEPT[case]
    run.log({"x": value}, step=1)
    run.finish()
    assert kept_points(run) == [("x", 1, expected)]
    assert run.dropped == 0


@pytest.mark.parametrize("case", TEXTS)
def test_texts_and_lists_are_kept_as_text(run: Run, case: str) -> None:
    value, kind, text = TEXTS[case]
    run.log({"x": value, "nested": {"y": 2.0}}, step=3)
    run.finish()
    [kept] = [text for batch in kept_batches(run) for text in batch.texts]
    assert (kept.run_id, kept.metric, kept.step, kept.kind, kept.text) == (run.id, "x", 3, kind, text)
    assert kept_points(run) == [("nested/y", 3, 2.0)]
    assert run.dropped == 0


def test_a_text_that_is_too_long_is_cut_counted_and_said(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    for step in range(40):
        run.log({"log": "x" * 100_000}, step=step)
    run.finish()
    texts = [text for batch in kept_batches(run) for text in batch.texts]
    assert [len(text.text) for text in texts] == [65_536] * 40
    assert run.dropped == 40
    assert max(batch.ByteSize() for batch in kept_batches(run)) < 4_000_000
    assert [record.message for record in caplog.records] == [
        "the rest of 'log' is not reported: it has 100000 characters, 65536 are kept"
    ]


def test_nan_is_data(run: Run) -> None:
    run.log({"x": float("nan")}, step=1)
    run.finish()
    [(_, _, value)] = kept_points(run)
    assert value != value


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_no_number_is_counted_and_said_once(run: Run, caplog: pytest.LogCaptureFixture, case: str) -> None:
    for step in range(3):
        run.log({"bad": REFUSED[case], "good": 1.0}, step=step)
    run.finish()
    assert [name for name, _, _ in kept_points(run)] == ["good"] * 3
    assert run.dropped == 3
    assert sum(batch.dropped_points for batch in kept_batches(run)) == 3
    assert [record.message for record in caplog.records if "'bad'" in record.message] == [
        record.message for record in caplog.records
    ]
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "name",
    ["", 7, None, ("a", "b"), "x" * 300, "x" * 10_000_000, "caf\u00e9", "a\ud800b", "new\nline", "nul\0"],
    ids=lambda name: ascii(name)[:20],
)
def test_a_bad_name_does_not_take_the_others_with_it(run: Run, caplog: pytest.LogCaptureFixture, name: Any) -> None:
    run.log({name: 1.0, "good": 2.0}, step=1)
    run.finish()
    assert kept_points(run) == [("good", 1, 2.0)]
    assert run.dropped == 1
    [record] = caplog.records
    assert len(record.message) < 400
    record.message.encode()


@pytest.mark.parametrize(
    ("step", "taken"),
    [(5.0, 5), (np.int64(5), 5), (np.float64(5.0), 5), (np.array(5), 5), (True, 1)],
    ids=repr,
)
def test_whole_steps_of_every_kind_are_taken(run: Run, step: Any, taken: int) -> None:
    run.log({"x": 1.0}, step=step)
    run.finish()
    assert kept_points(run) == [("x", taken, 1.0)]


@pytest.mark.parametrize("step", [5.5, -5, 2**70, float("nan"), float("inf"), "5", None.__class__, [5]], ids=repr)
def test_a_bad_step_is_counted_and_harms_nothing_after_it(
    run: Run, caplog: pytest.LogCaptureFixture, step: Any
) -> None:
    run.log({"x": 0.0}, step=1)
    for _ in range(3):
        run.log({"x": 1.0, "y": 1.0}, step=step)
    for later in range(2, 1000):
        run.log({"x": 2.0}, step=later)
    run.log({"x": 3.0})
    run.finish()
    assert len(kept_points(run)) == 1000
    assert kept_points(run)[-1] == ("x", 1000, 3.0)
    assert run.dropped == 6
    assert len(caplog.records) == 1
    assert "step" in caplog.records[0].message


def test_a_step_may_go_back(run: Run) -> None:
    for step in (5, 3, 4):
        run.log({"x": 1.0}, step=step)
    run.finish()
    assert [step for _, step, _ in kept_points(run)] == [5, 3, 4]


def test_a_dict_in_a_dict_is_a_longer_name(run: Run) -> None:
    deep: dict[str, Any] = {}
    deep["again"] = deep
    run.log({"eval": {"loss": 1.0, "top": {"5": 2.0}}, "deep": deep}, step=1)
    run.finish()
    assert kept_points(run) == [("eval/loss", 1, 1.0), ("eval/top/5", 1, 2.0)]
    assert run.dropped == 1


def test_ten_thousand_names_are_kept_in_messages_of_a_few_megabytes(run: Run) -> None:
    run.log({f"{number:06d}{'x' * 250}": float(number) for number in range(10_000)}, step=1)
    run.finish()
    assert [value for _, _, value in kept_points(run)] == [float(number) for number in range(10_000)]
    assert max(batch.ByteSize() for batch in kept_batches(run)) < 4_000_000


def test_ten_thousand_bad_names_are_not_ten_thousand_lines(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.log({f"\u00e9{number}": 1.0 for number in range(10_000)}, step=1)
    run.finish()
    assert run.dropped == 10_000
    assert 100 <= len(caplog.records) <= 105


class _Hostile(dict[str, float]):
    def items(self) -> Any:
        raise RuntimeError("not today")


def test_a_dict_that_cannot_be_read_is_counted(run: Run) -> None:
    run.log({"a": _Hostile(x=1.0), "b": 1.0}, step=1)
    run.log({"x": 1.0}, step=2)
    run.finish()
    assert kept_points(run) == [("x", 2, 1.0)]
    assert run.dropped == 2


def test_what_is_logged_after_finish_is_counted_and_said(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    run.finish()
    for step in range(3):
        run.log({"x": 1.0, "y": 2.0}, step=step)
    assert run.dropped == 6
    assert [record.message for record in caplog.records] == ["run.log is not reported: the run is finished"]


def test_dropped_is_the_sum_of_all_that_was_lost(run: Run) -> None:
    for step in range(4):
        run.log({"x": object()}, step=step)
        run.reporter.secure()
        assert run.dropped == step + 1


def _log_from_child(run: Run) -> None:
    for step in range(100):
        run.log({"child": float(step)}, step=step)


def test_the_points_of_a_child_of_multiprocessing_are_kept(run: Run) -> None:
    run.log({"parent": 1.0}, step=1)
    child = multiprocessing.get_context("fork").Process(target=_log_from_child, args=(run,))
    child.start()
    child.join(30)
    assert child.exitcode == 0
    run.log({"parent": 2.0}, step=2)
    run.finish()
    points = kept_points(run)
    assert sorted(value for name, _, value in points if name == "child") == [float(step) for step in range(100)]
    assert sorted(value for name, _, value in points if name == "parent") == [1.0, 2.0]


def test_a_forked_child_that_finishes_does_not_end_its_parents_run(run: Run) -> None:
    child = os.fork()
    if child == 0:
        run.log({"child": 1.0}, step=1)
        run.finish()
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    run.log({"parent": 2.0}, step=1)
    run.reporter.secure()
    assert [info.status for batch in kept_batches(run) for info in batch.runs] == ["running"]
    run.finish()
    assert sorted(name for name, _, _ in kept_points(run)) == ["child", "parent"]


@pytest.mark.parametrize(
    "config",
    [{"seed": 2**70}, {"a\ud800": "\ud800"}, {("a", 1): 2}, {"nan": float("nan")}, {"x": "y" * 10_000_000}, {1: 2}],
    ids=["bigint", "surrogate", "tuple key", "nan", "long", "int key"],
)
def test_no_config_stops_a_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, config: Any) -> None:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    logging.captureWarnings(False)
    run = init(project="a\ud800b", name="n\ud800", config=config, run_id="odd")
    run.log({"x": 1.0}, step=1)
    run.finish()
    assert kept_points(run) == [("x", 1, 1.0)]
    told = [info.config_json for batch in kept_batches(run) for info in batch.runs]
    assert len(told) == 2
    assert max(map(len, told)) < 210 * 1024


def test_a_config_that_holds_itself_stops_no_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    config: dict[str, Any] = {}
    config["self"] = config
    run = init(name="odd", config=config)
    run.finish()
    assert "cannot be shown" in next(info.config_json for batch in kept_batches(run) for info in batch.runs)


def test_a_name_that_is_none_is_said_with_what_is_allowed(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    odd: dict[Any, float] = {"a#": 1.0, 7: 2.0}
    run.log(odd, step=1)
    run.finish()
    said = [record.message for record in caplog.records]
    assert [text.partition(" Allowed: letters, digits")[0] for text in said] == [
        f"metric {name!r} is not reported: that is no metric name." for name in odd
    ]
