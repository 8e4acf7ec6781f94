"""A training job on the hosts of a site: what is typed to start it, what its ranks note of every step, and how it is
brought to an end. Folders are shared between the hosts, as by NFS.
"""

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata.types.tasks import TaskStatus
from tests.support.namespaces import Host, Site, line_with
from tests.support.waiting import eventually

__all__ = ["Note", "SiteJob", "start_head", "ticket"]

# Ranks meet at every step, save every tenth, and go on until a file says that it is enough.
_SCRIPT = """
import os, socket, sys, time, numpy, strata
folder = sys.argv[1]
run = strata.init(name="steps")
with run.checkpoints() as checkpoints, open(f"{folder}/steps", "a", buffering=1) as notes:
    found = checkpoints.recover()
    step, enough = found.info.step if found else 0, 0.0
    while not enough and not run.should_stop():
        enough = run.gang.sum(numpy.array([float(os.path.exists(f"{folder}/enough"))]))[0]
        step += 1
        place = f"{run.place.attempt} {run.rank} {run.world_size} {os.getpid()} {socket.gethostname()}"
        notes.write(f"{time.time():.3f} {place} {step}\\n")
        run.log({"loss": 1 / step}, step=step)
        if step % 10 == 0 or enough:
            checkpoints.save({"step": numpy.array([step])}, step=step, epoch=0)
        time.sleep(0.05)
run.finish()
"""


@dataclass(frozen=True, slots=True)
class Note:
    """A step that a rank has finished, and when."""

    at: float
    attempt: int
    rank: int
    size: int
    pid: int
    host: str
    step: int


def ticket(line: str) -> str:
    """The word that stands behind --join."""
    found = re.search(r"\S+\.\S+\.\S+@\S+:\d+", line)
    assert found is not None, line
    return found[0]


def start_head(site: Site, options: str = "--no-agent") -> tuple[Host, str, str]:
    """The first host, with the words by which hosts and people join it."""
    head = site.host("head")
    said = head.start(f"strata up --host {head.address} {options}")
    return head, ticket(line_with(said, "strata agent --join")), ticket(line_with(said, "strata run --join"))


class SiteJob:
    """One job, typed at the host `desk`. `environment` is what agents and people need besides."""

    def __init__(self, folder: Path, desk: Host, **environment: str) -> None:
        self._folder, self._desk = folder, desk
        self.environment = {"STRATA_CHECKPOINT_BUCKET": str(folder / "checkpoints"), **environment}
        self.task_id = ""

    def start(self, options: str, script: str = _SCRIPT) -> None:
        file = self._folder / "steps.py"
        file.write_text(script)
        line = f"strata run --detach --name steps {options} {file} {self._folder}"
        ran = self._desk.run(line, **self.environment)
        assert ran.returncode == 0, ran.stderr
        self.task_id = ran.stdout.strip()

    def notes(self) -> list[Note]:
        file = self._folder / "steps"
        lines = file.read_text().splitlines() if file.exists() else []
        return [_note(line.split()) for line in lines]

    def wait_steps(self, what: str, which: Callable[[Note], bool], number: int = 20) -> list[Note]:
        """So many steps of this kind, once there are."""

        def found() -> list[Note] | None:
            notes = [note for note in self.notes() if which(note)]
            return notes if len(notes) >= number else None

        return eventually(f"{number} steps {what}", found, within_s=60)

    def finish(self) -> dict[str, Any]:
        """The task, once it has ended well."""
        (self._folder / "enough").touch()

        def ended() -> dict[str, Any] | None:
            task = self.task()
            return task if TaskStatus(task["status"]).final else None

        task = eventually("the end of the task", ended, within_s=60)
        assert TaskStatus(task["status"]) is TaskStatus.COMPLETED, task["reason"]
        return task

    def task(self) -> dict[str, Any]:
        ran = self._desk.run("strata tasks --json", **self.environment)
        assert ran.returncode == 0, ran.stderr
        (found,) = [task for task in json.loads(ran.stdout) if task["id"] == self.task_id]
        return dict(found)


def _note(words: list[str]) -> Note:
    at, attempt, rank, size, pid, host, step = words
    return Note(float(at), int(attempt), int(rank), int(size), int(pid), host, int(step))
