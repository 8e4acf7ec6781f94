"""What a script says of its run beside its points: labels, config of every kind, summary values, going on with it."""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from strata.errors import Conflict, InvalidArgument, NotFound
from strata.worker.run import Run, init
from tests.support.offline import kept_batches


@pytest.fixture
def start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    begun: list[Run] = []

    def begin(**about: Any) -> Run:
        begun.append(init(**about))
        return begun[-1]

    yield begin
    for run in begun:
        run.finish()


def told(run: Run) -> list[Any]:
    return [info for batch in kept_batches(run) for info in batch.runs]


def test_labels_are_told_and_told_again_when_they_change(start: Any) -> None:
    run = start(tags=["a", "b", "a"], group="sweep", job_type="train", notes="first\nsecond", config={"lr": 1})
    run.update(tags=("a", "c"), notes="third", config={"lr": 2, "new": True})
    run.finish()
    first, second, last = told(run)
    assert (list(first.tags), first.group, first.job_type, first.notes) == (
        ["a", "b"],
        "sweep",
        "train",
        "first\nsecond",
    )
    assert (list(second.tags), second.group, second.notes, second.status) == (["a", "c"], "sweep", "third", "")
    assert second.config_json == '{"lr": 2, "new": true}'
    assert (list(last.tags), last.status) == (["a", "c"], "finished")


def test_numbers_are_names_too(start: Any) -> None:
    run = start(name=5, project=7, run_id=42)
    run.finish()
    assert (run.id, told(run)[0].name, told(run)[0].project) == ("42", "5", "7")
    assert start(name=5).id.startswith("5-")


@dataclass
class _Config:
    lr: float = 0.5


@pytest.mark.parametrize(
    "config", [{"lr": 0.5}, _Config(), argparse.Namespace(lr=0.5)], ids=["dict", "dataclass", "argparse"]
)
def test_a_config_comes_as_people_have_it(start: Any, config: Any) -> None:
    assert start(config=config).config == {"lr": 0.5}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"tag": ["a"]}, "strata.init has no argument 'tag'; did you mean tags?"),
        ({"entity": "me"}, "strata.init has no argument 'entity'"),
        ({"tags": ["x" * 65]}, "tag 'xxx"),
        ({"tags": [" a"]}, "tag ' a' is not"),
        ({"tags": ["a\ud800"]}, "tag 'a\\ud800' is not"),
        ({"tags": [f"t{number}" for number in range(101)]}, "there are 101 tags"),
        ({"group": "two\nlines"}, "group holds the unprintable character"),
        ({"notes": "x" * 20_001}, "notes has 20001 characters"),
        ({"config": 5}, "config is a int"),
        ({"resume": "maybe", "run_id": "r"}, "resume is 'maybe'"),
        ({"resume": True}, "resume needs the run's id"),
    ],
    ids=repr,
)
def test_what_is_wrong_is_said_before_anything_starts(start: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(InvalidArgument) as refused:
        start(**arguments)
    assert words in refused.value.message
    if "no argument" in words:
        assert refused.value.hint == "It takes project, name, config, tags, group, job_type, notes, run_id, resume."


def test_summary_values_are_told_as_json(start: Any) -> None:
    run = start()
    run.summary["best"] = 0.5
    run.summary.update({"epoch": 3, "words": ["a"]})
    del run.summary["epoch"]
    assert dict(run.summary) == {"best": 0.5, "words": ["a"]}
    run.summary["long"] = "x" * 70_000
    run.finish()
    values = [(value.name, value.value_json) for batch in kept_batches(run) for value in batch.summaries]
    assert values == [("best", "0.5"), ("epoch", "3"), ("words", '["a"]'), ("epoch", "")]
    assert run.dropped == 1


def test_a_run_of_this_folder_is_gone_on_with(start: Any) -> None:
    with pytest.raises(NotFound, match="there is no run 'again'"):
        start(run_id="again", resume="must")
    assert not start(run_id="again", resume="allow").resumed
    start().finish()
    with pytest.raises(Conflict, match="is there already"):
        start(run_id="again", resume="never")
    run = start(run_id="again", resume=True)
    assert run.resumed
    assert run.id == "again"
