"""A fork goes on from a checkpoint of another task: same model, same place in the data, without the batches of a
spike. Real processes, shared by the whole file.
"""

import json
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.error import HTTPError

import numpy as np
import pytest

from strata.checkpoint.manager import CheckpointManager
from strata.errors import CheckpointNotFound, InvalidArgument, UnknownTask
from strata.types.forks import ForkRequest
from strata.types.tasks import TaskStatus
from tests.support.cluster import strata
from tests.support.nodes import Nodes, wait_for

pytestmark = pytest.mark.timeout(300)
WORKER = Path(__file__).with_name("fork_worker.py")
ROWS, RANKS, BATCH, EPOCHS, STEPS = 200, 2, 4, 2, 50
SPIKE = range(10, 13)  # the steps of the parent that read poisoned rows


class Step(NamedTuple):
    """What the ranks read, one after the other, the loss, and the model before and after; all but the ids as hex."""

    ids: tuple[int, ...]
    loss: str
    before: str
    mean: str


class Jobs:
    """Tasks of the worker above on one cluster; `parent` has run to its end."""

    def __init__(self, nodes: Nodes) -> None:
        self.nodes = nodes
        self.folder = nodes.data_dir.parent / "job"
        (self.folder / "data").mkdir(parents=True)
        for part in range(2):
            ids = np.arange(part * ROWS // 2, (part + 1) * ROWS // 2)
            np.savez(self.folder / "data" / f"{part}.npz", id=ids)
        first = self.submit("clean")
        self.ended(first)
        clean = self.steps(first)
        poisoned = [row for step in SPIKE for row in clean[step].ids]
        (self.folder / "poisoned.json").write_text(json.dumps(poisoned))
        self.parent = self.submit("parent")
        self.ended(self.parent)
        self.trained = self.steps(self.parent)
        assert {at: step.ids for at, step in self.trained.items()} == {at: step.ids for at, step in clean.items()}

    def submit(self, name: str, *arguments: str) -> str:
        command = (sys.executable, str(WORKER), str(self.folder), *arguments)
        return self.nodes.submit(name=name, entrypoint=command, worker_count=RANKS)

    def ended(self, task_id: str, status: TaskStatus = TaskStatus.COMPLETED) -> str:
        task = self.nodes.wait_task(task_id)
        assert task.status is status, (task.reason, self.nodes.output(task_id, 1, 0))
        return task.reason

    def steps(self, task_id: str) -> dict[int, Step]:
        ids: dict[int, list[int]] = {}
        rest: dict[int, set[tuple[str, str, str]]] = {}
        for path in sorted(self.folder.glob(f"{task_id}-*.jsonl")):
            for note in map(json.loads, path.read_text().splitlines()):
                ids.setdefault(note["step"], []).extend(note["ids"])
                rest.setdefault(note["step"], set()).add((note["loss"], note["before"], note["mean"]))
        assert all(len(found) == 1 for found in rest.values())
        return {step: Step(tuple(ids[step]), *rest[step].pop()) for step in sorted(ids)}

    def losses(self, run_id: str) -> dict[str, dict[int, str]]:
        """What the page draws of a run: by the run that measured it, the losses of rank 0 by step."""
        answer = self.nodes.get(f"/api/metrics/{run_id}?metric=loss&inherited=true") or {"series": []}
        mine = [found for found in answer["series"] if found["rank"] == 0]
        return {
            found["origin"] or run_id: {
                step: value.hex() for step, value in zip(found["steps"], found["values"], strict=True)
            }
            for found in mine
        }

    def fork(self, task_id: str, **asked: Any) -> tuple[str, int]:
        return self.nodes.tasks().fork(task_id, ForkRequest(**asked))


@pytest.fixture(scope="module")
def jobs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Jobs]:
    with Nodes(tmp_path_factory.mktemp("fork"), slots=2 * RANKS) as nodes:
        nodes.start("coordinator", "agent", "observatory")
        yield Jobs(nodes)


def _kept(jobs: Jobs, task_id: str) -> list[int]:
    found = (jobs.nodes.data_dir / "checkpoints" / task_id).glob("step-*/COMMIT.json")
    return sorted(int(path.parent.name.rpartition("-")[2]) for path in found)


def test_a_fork_without_the_spike_reads_all_but_its_batches(jobs: Jobs) -> None:
    """THE promise: the ledger lacks exactly the skipped samples; what comes before is the parent's, bit for bit, and
    what comes after is what a script trains that never learned from these batches."""
    held = jobs.submit("held", "--until", "9")
    wait_for(lambda: 8 in _kept(jobs, held), 60, "its checkpoint of step 8")
    with CheckpointManager(jobs.nodes.data_dir / "checkpoints" / held, rank=0, world_size=1) as checkpoints:
        saved = checkpoints.load(8)
    child, begins = jobs.fork(held, skip=((SPIKE[0], SPIKE[-1]),), arguments=("--until", "0"))
    assert begins == 8
    jobs.ended(child)
    (jobs.folder / "go").touch()
    jobs.ended(held)
    without = jobs.submit("without", "--without", *map(str, SPIKE))
    jobs.ended(without)
    whole, mine, reference = jobs.trained, jobs.steps(child), jobs.steps(without)
    before = {step: found for step, found in whole.items() if step <= begins}
    assert {step: found for step, found in jobs.steps(held).items() if step <= begins} == before
    assert float(saved["parts"]["model"]["tree"]["mean"][0]).hex() == mine[begins + 1].before == whole[begins].mean
    shift = {step: step - len(SPIKE) * (step > SPIKE[-1]) for step in reference if step > begins}
    assert mine == {shift[step]: reference[step] for step in shift}
    assert list(mine) == list(range(begins + 1, STEPS + 1 - len(SPIKE)))
    all_rows, read = _rows(whole.values()), _rows([*before.values(), *mine.values()])
    assert all_rows == dict.fromkeys(range(ROWS), EPOCHS)
    assert all_rows - read == _rows(whole[step] for step in SPIKE)
    assert not read - all_rows
    told = {held: before, child: mine}
    drawn = {run: {step: found.loss for step, found in steps.items()} for run, steps in told.items()}
    wait_for(lambda: jobs.losses(child) == drawn, 60, "every logged loss of the fork, and of its parent before")
    first_epoch = [float.fromhex(mine[step].mean) for step in range(9, STEPS // EPOCHS + 1 - len(SPIKE))]
    assert max(first_epoch) < 7 < 1e6 < float.fromhex(whole[SPIKE[0]].mean)


def _rows(steps: Iterable[Step]) -> Counter[int]:
    return Counter(row for step in steps for row in step.ids)


@pytest.mark.slow
def test_from_the_click_to_a_step_of_the_fork(jobs: Jobs, record_property: Callable[[str, object], None]) -> None:
    """The goal is ten seconds of a quiet machine; what it took is printed."""
    began = time.monotonic()
    child = jobs.nodes.post(f"/api/tasks/{jobs.parent}/fork", {"step": 48})["task_id"]
    wait_for(lambda: jobs.nodes.get(f"/api/tasks/{child}")["status"] in ("running", "completed"), 60, "it runs")
    running_s = time.monotonic() - began
    wait_for(lambda: jobs.steps(child), 60, "its first step")
    told = f"a fork runs after {running_s:.1f} s, and has made a step after {time.monotonic() - began:.1f} s"
    record_property("fork", told)
    sys.stderr.write(f"{told}\n")
    jobs.ended(child)


@pytest.mark.slow
def test_a_fork_of_an_elastic_task_begins_with_the_slots_that_are_free(jobs: Jobs) -> None:
    (jobs.folder / "go").unlink(missing_ok=True)
    command = (sys.executable, str(WORKER), str(jobs.folder))
    parent = jobs.nodes.submit(name="elastic", entrypoint=command, worker_count=RANKS, min_workers=1)
    jobs.ended(parent)
    step, whole = _kept(jobs, parent)[0], jobs.steps(parent)
    others = jobs.nodes.submit(name="others", entrypoint=(*command, "--until", "1"), worker_count=2 * RANKS - 1)
    wait_for(lambda: jobs.steps(others), 60, "the others have their slots")
    child, begins = jobs.fork(parent, step=step)
    jobs.ended(child)
    spec = jobs.nodes.tasks().get(child).spec
    assert (begins, spec.min_workers, spec.worker_count) == (step, 1, RANKS)
    assert [path.name for path in jobs.folder.glob(f"{child}-*.jsonl")] == [f"{child}-0.jsonl"]
    assert _rows(jobs.steps(child).values()) == _rows(found for at, found in whole.items() if at > step)
    (jobs.folder / "go").touch()
    jobs.ended(others)


@pytest.mark.slow
def test_the_parents_retention_leaves_what_a_fork_still_needs(jobs: Jobs) -> None:
    """The parent keeps two; the fork waits in the queue, for the parent has all slots."""
    (jobs.folder / "go").unlink(missing_ok=True)
    other = jobs.submit("other", "--until", "6")
    held = jobs.submit("kept", "--until", "9")
    wait_for(lambda: 8 in _kept(jobs, held), 60, "its checkpoint of step 8")
    child, begins = jobs.fork(held, step=7)
    assert begins == 4
    (jobs.folder / "go").touch()
    jobs.ended(held)
    jobs.ended(other)
    assert 4 in _kept(jobs, held) or jobs.nodes.tasks().get(child).saved_step
    jobs.ended(child)
    assert jobs.steps(child) == {step: found for step, found in jobs.trained.items() if step > 4}


@pytest.mark.slow
def test_changes_reach_the_script_and_a_fork_of_a_fork_goes_on(jobs: Jobs) -> None:
    answer = jobs.nodes.post(f"/api/tasks/{jobs.parent}/fork", {"changes": {"lr": 0.5, "new": [1]}, "name": "quick"})
    child, begins = answer["task_id"], answer["from_step"]
    jobs.ended(child)
    assert begins == STEPS
    assert not jobs.steps(child)  # the parent had finished
    shown = jobs.nodes.get(f"/api/tasks/{child}")
    assert shown["config"] == {"lr": 0.5, "new": [1]}
    assert (shown["fork"]["task_id"], shown["fork"]["step"], shown["fork"]["changes"]) == (
        jobs.parent,
        STEPS,
        {"lr": 0.5, "new": [1]},
    )
    assert shown["fork"]["by"].startswith("forked by ")
    step = _kept(jobs, jobs.parent)[0]
    first, _ = jobs.fork(jobs.parent, step=step, changes={"lr": 0.5})
    jobs.ended(first)
    assert [found.ids for found in jobs.steps(first).values()] == [
        jobs.trained[at].ids for at in range(step + 1, STEPS + 1)
    ]
    assert jobs.steps(first)[step + 1] != jobs.trained[step + 1]
    second, begins = jobs.fork(first)
    jobs.ended(second)
    assert jobs.nodes.tasks().get(second).spec.fork.task_id == first  # type: ignore[union-attr]  # it is one


@pytest.mark.slow
def test_a_script_that_names_one_path_for_all_runs(jobs: Jobs) -> None:
    place = jobs.folder / "one-place"
    parent = jobs.submit("placed", "--path", str(place))
    jobs.ended(parent)
    before = sorted(path.name for path in place.glob("step-*"))
    child, _ = jobs.fork(parent, step=48)
    jobs.ended(child)
    grandchild, _ = jobs.fork(child)
    jobs.ended(grandchild)
    assert sorted(path.name for path in place.glob("step-*")) == before
    assert [path.name for path in (place / "forks").iterdir()] == [child]  # the other found nothing left to train
    assert list(jobs.steps(child)) == [49, 50]


@pytest.mark.slow
def test_the_command_follows_the_fork_to_its_end(jobs: Jobs) -> None:
    where = {"STRATA_COORDINATOR_ADDR": jobs.nodes.address, "STRATA_HTTP_PORT": jobs.nodes.http.rpartition(":")[2]}
    folder = ("--data-dir", str(jobs.nodes.data_dir))
    done = strata("fork", jobs.parent, "--step", "49", "--set", "lr=1e-4", *folder, "--", "--until", "0", **where)
    assert done.returncode == 0, done.stderr
    assert f"from step 48 of {jobs.parent}" in done.stderr
    assert "has no 'lr': it is added" in done.stderr
    assert "done after step 50" in done.stdout
    for arguments, said in (
        (("--skip", "60..50"), "steps 60..50 run backwards"),
        (("--skip", "soon"), "names no steps to leave out"),
        (("--set", "lr"), "changes nothing"),
        (("--step", "1"), "no good checkpoint at or before step 1"),
    ):
        refused = strata("fork", jobs.parent, *arguments, *folder, **where)
        assert refused.returncode == 1
        assert said in refused.stderr, refused.stderr


@pytest.mark.slow
def test_what_cannot_be_forked_is_refused_with_a_reason(jobs: Jobs) -> None:
    kept = _kept(jobs, jobs.parent)
    for asked, error, said in (
        ({"skip": ((3, 5),)}, CheckpointNotFound, "no good checkpoint at or before step 2"),
        ({"step": kept[-1], "skip": ((kept[-1], kept[-1] + 2),)}, InvalidArgument, "holds it already"),
        ({"skip": ((kept[-1] + 1, kept[-1] + 10**7),)}, InvalidArgument, "more than 1000000 steps after"),
        ({"checkpoint_id": "step-000000000004.nobody"}, CheckpointNotFound, "has no checkpoint"),
        ({"name": "no name/"}, InvalidArgument, "task name"),
        ({"changes": {"x": "y" * 300_000}}, InvalidArgument, "config has"),
    ):
        with pytest.raises(error, match=said):
            jobs.fork(jobs.parent, **asked)
    with pytest.raises(UnknownTask):
        jobs.fork("nobody")
    with pytest.raises(HTTPError, match="422"):
        jobs.nodes.post(f"/api/tasks/{jobs.parent}/fork", {"skip": [[1]]})


@pytest.mark.slow
def test_a_checkpoint_that_is_gone_or_another_fails_the_fork_with_a_sentence(jobs: Jobs) -> None:
    parent = jobs.submit("lost")
    jobs.ended(parent)
    step = _kept(jobs, parent)[-1]
    folder = jobs.nodes.data_dir / "checkpoints" / parent / f"step-{step:012d}"
    shutil.move(folder, folder.with_name("elsewhere"))
    child, _ = jobs.fork(parent, step=step)
    assert jobs.nodes.wait_task(child).status is TaskStatus.FAILED
    assert "with which this fork begins, is gone" in jobs.nodes.output(child, 1, 0, "stderr")
    shutil.move(folder.with_name("elsewhere"), folder)
    commit = folder / "COMMIT.json"
    commit.write_bytes(commit.read_bytes()[:-20])
    child, _ = jobs.fork(parent, step=step)
    assert jobs.nodes.wait_task(child).status is TaskStatus.FAILED
    assert "CorruptCheckpoint" in jobs.nodes.output(child, 1, 0, "stderr")
