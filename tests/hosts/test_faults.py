"""What networks and machines do to a job over two hosts: they go for good, come back, hear only one way, crawl."""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import pytest

from tests.support.namespaces import Host, Site
from tests.support.networks import lacking
from tests.support.site_job import SiteJob, start_head
from tests.support.waiting import eventually

pytestmark = [pytest.mark.hosts, pytest.mark.timeout(600), pytest.mark.skipif(bool(lacking()), reason=lacking())]

_SLOTS = "2"


class Scene(NamedTuple):
    head: Host
    a: Host
    b: Host
    job: SiteJob


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    """Four slots on two hosts. The first one also serves as the desk of the one who types."""
    with Site(tmp_path, "10.219.81") as site:
        head, agents, _ = start_head(site)
        a, b = site.host("a"), site.host("b")
        job = SiteJob(tmp_path, head)
        for host in (a, b):
            host.start(f"strata agent --slots {_SLOTS} --join {agents}", **job.environment)
            eventually(f"the agent of {host.name}", (host.folder / ".strata" / "agent.json").exists)
        yield Scene(head, a, b, job)


def test_a_host_is_cut_off_for_good_and_comes_back_as_a_zombie(scene: Scene) -> None:
    """Prints how long nobody trained. What the zombie's ranks were is over: they end, and its slots are used anew."""
    job = scene.job
    job.start("--workers 2..4 --grow-after 1")
    before = job.wait_steps("of four ranks", lambda note: note.size == 4)
    scene.b.cable.cut()
    cut = time.time()
    after = job.wait_steps("of two ranks", lambda note: note.attempt == 2)
    assert {note.host for note in after} == {"a"}
    print(f"training went on {after[0].at - cut:.1f} s after the cut")  # noqa: T201  # what it was run for
    zombies = {note.pid for note in before if note.host == "b"}
    assert scene.b.pids() >= zombies, "they live while nobody can tell them"
    scene.b.cable.mend()
    eventually("the end of its ranks", lambda: not scene.b.pids() & zombies, within_s=60)
    grown = job.wait_steps("of four ranks again", lambda note: note.attempt == 3 and note.size == 4)
    assert {note.host for note in grown} == {"a", "b"}
    assert job.finish()["attempt"] == 3
    assert not [note for note in job.notes() if note.attempt == 1 and note.at > after[0].at], "a zombie has trained"


@pytest.mark.parametrize("deaf", ["to", "from"], ids=["nothing gets there", "nothing comes from there"])
def test_a_line_that_carries_only_one_way_is_no_line(scene: Scene, deaf: Literal["to", "from"]) -> None:
    job = scene.job
    job.start("--workers 2..4 --grow-after 1")
    job.wait_steps("of four ranks", lambda note: note.size == 4)
    scene.b.cable.cut(deaf)
    after = job.wait_steps("of two ranks", lambda note: note.attempt == 2)
    assert {note.host for note in after} == {"a"}
    scene.b.cable.mend()
    job.wait_steps("of four ranks again", lambda note: note.attempt == 3 and note.size == 4)
    assert job.finish()["attempt"] == 3


def test_a_host_is_killed_and_starts_again(scene: Scene) -> None:
    """All its processes at once; its agent comes back without the line that joined it."""
    job = scene.job
    job.start("--workers 2..4 --grow-after 1")
    job.wait_steps("of four ranks", lambda note: note.size == 4)
    scene.b.kill()
    killed = time.time()
    after = job.wait_steps("of two ranks", lambda note: note.attempt == 2)
    print(f"training went on {after[0].at - killed:.1f} s after the kill")  # noqa: T201  # what it was run for
    scene.b.start(f"strata agent --slots {_SLOTS} --coordinator {scene.head.address}:50051", **job.environment)
    job.wait_steps("of four ranks again", lambda note: note.attempt == 3 and note.size == 4)
    assert job.finish()["attempt"] == 3


def test_a_slow_line_that_loses_frames_costs_nobody_a_rank(scene: Scene) -> None:
    """40 ms each way, and every fiftieth frame is lost."""
    job = scene.job
    job.start("--workers 4")
    job.wait_steps("of four ranks", lambda note: note.size == 4)
    scene.b.cable.worsen(delay_s=0.04, loss=0.02)
    worse = time.time()
    job.wait_steps("on the worse line", lambda note: note.at > worse, 80)
    assert job.finish()["attempt"] == 1


_ALONE = """
import os, socket, sys, time, strata
folder = sys.argv[1]
run = strata.init(name="steps")
with open(f"{folder}/steps", "a", buffering=1) as notes:
    step, enough = 0, False
    while not enough:
        enough, step = os.path.exists(f"{folder}/enough"), step + 1
        place = f"{run.place.attempt} {run.rank} 1 {os.getpid()} {socket.gethostname()}"
        strata.barrier("step", step=step)
        notes.write(f"{time.time():.3f} {place} {step}\\n")
        time.sleep(0.05)
run.finish()
"""


def test_the_first_call_of_a_zombie_is_fenced(scene: Scene) -> None:
    """Its agent is dead: nobody ends it before it calls."""
    job = scene.job
    job.start("--workers 1", _ALONE)
    first = job.wait_steps("of the first attempt", lambda note: note.attempt == 1)[0]
    host, other = (scene.a, scene.b) if first.host == "a" else (scene.b, scene.a)
    host.cable.cut()
    host.kill_commands()
    after = job.wait_steps("elsewhere", lambda note: note.attempt == 2)
    assert {note.host for note in after} == {other.name}
    assert first.pid in host.pids()
    host.cable.mend()
    eventually("the end of the zombie", lambda: first.pid not in host.pids(), within_s=60)
    assert job.finish()["attempt"] == 2
    assert not [note for note in job.notes() if note.attempt == 1 and note.at > after[0].at], "it was let through"
