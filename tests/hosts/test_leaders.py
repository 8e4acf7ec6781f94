"""Two coordinators on hosts of their own over one PostgreSQL: the leader's host is cut off, comes back, and the next
leader's is killed; four ranks train on as the same processes.
"""

import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from strata.client.channel import Channel
from strata.client.tasks import TasksClient, TaskView
from strata.trust.access import Access
from strata.types.tasks import TaskStatus
from tests.support.namespaces import Host, Site, line_with
from tests.support.networks import lacking
from tests.support.postgres import Postgres, require_postgres
from tests.support.site_job import Note, SiteJob
from tests.support.waiting import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600), pytest.mark.skipif(bool(lacking()), reason=lacking())]

_NET = "10.219.82"
_TOKEN = "token-of-several-0123456789"


@contextmanager
def _coordinators(site: Site, journal: str) -> Iterator[tuple[Host, Host, dict[str, str]]]:
    """`strata up` on two hosts, as docs/deploying.md says it; and what everybody else needs to find them."""
    first, second = site.host("first"), site.host("second")
    found = {"STRATA_TOKEN": _TOKEN, "COORDINATOR_ADDR": f"{first.address}:50051,{second.address}:50051"}
    line_with(first.start(f"strata up --no-agent --host {first.address}", STRATA_JOURNAL=journal, **found), "Dashboard")
    made = first.folder / ".strata" / "tls"
    (second.folder / ".strata" / "tls").mkdir(parents=True)
    for name in ("ca.pem", "ca.key"):
        shutil.copy(made / name, second.folder / ".strata" / "tls" / name)
    said = second.start(f"strata up --no-agent --host {second.address}", STRATA_JOURNAL=journal, **found)
    assert "stands by: first, pid" in line_with(said, "stands by")
    line_with(said, "Dashboard")
    yield first, second, {**found, "STRATA_CA_FILE": str(made / "ca.pem")}


def test_the_leaders_host_is_cut_off_and_the_next_one_killed(tmp_path: Path) -> None:
    require_postgres()
    with Site(tmp_path, _NET) as site, Postgres(net=f"{_NET}.0/24") as postgres:
        journal = postgres.new_database().replace("127.0.0.1", site.address)
        with _coordinators(site, journal) as (first, second, found):
            host = site.host("third")
            job = SiteJob(tmp_path, host, **found)
            host.start("strata agent --slots 4", **job.environment)
            job.start("--workers 4")
            job.wait_steps("of four ranks", lambda note: note.size == 4)
            first.cable.cut()
            _goes_on(job, "the leader was cut off")
            first.cable.mend()
            log = first.folder / ".strata" / "logs" / "coordinator.log"
            eventually("the former leader standing by", lambda: "standing by" in log.read_text())
            second.kill()
            _goes_on(job, "the next leader was killed")
            task = _finish(job, found, tmp_path)
    assert task.attempt == 1
    assert len({note.pid for note in job.notes()}) == 4
    for rank in range(4):
        assert [note.step for note in job.notes() if note.rank == rank] == list(range(1, (task.saved_step or 0) + 1))


def _goes_on(job: SiteJob, after: str) -> None:
    """A checkpoint is saved, which takes a leader. Ranks that only meet each other need none."""
    began = time.time()
    notes = job.notes()
    save = max(note.step for note in notes) // 10 * 10 + 20

    def beyond(note: Note) -> bool:
        return note.step > save

    done = job.wait_steps(f"after {after}", beyond, 4)
    print(f"{after}: {done[-1].at - began:.1f} s until a checkpoint and a step")  # noqa: T201  # what it was run for


def _finish(job: SiteJob, found: dict[str, str], folder: Path) -> TaskView:
    """By gRPC: the observatory that is asked by default was on a host that is dead."""
    (folder / "enough").touch()
    access = Access(token=_TOKEN, roots=Path(found["STRATA_CA_FILE"]).read_text())
    with Channel(found["COORDINATOR_ADDR"], access=access, patience_s=60.0) as channel:
        tasks = TasksClient(channel)

        def ended() -> TaskView | None:
            task = tasks.get(job.task_id)
            return task if task.status.final else None

        task = eventually("the end of the task", ended, within_s=60)
    assert task.status is TaskStatus.COMPLETED, task.reason
    return task
