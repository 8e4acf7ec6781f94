"""Hosts that go away: what runs there saves at one agreed step and goes on elsewhere, and no step is lost."""

import contextlib
import os
import random
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from strata.client.records import RecordsClient
from strata.client.tasks import TaskView
from strata.types.tasks import TaskStatus
from tests.support.hosts import Hosts, finished_steps
from tests.support.nodes import wait_for


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        yield hosts


def wait_steps(hosts: Hosts, number: int) -> None:
    wait_for(lambda: len(hosts.noted(0)) > number, what=f"{number} steps")


def wait_attempt(hosts: Hosts, task_id: str, attempt: int) -> TaskView:
    def there() -> TaskView | None:
        task = hosts.task(task_id)
        return task if task.attempt >= attempt or task.status.final else None

    found: TaskView = wait_for(there, what=f"attempt {attempt}")
    return found


def wait_going_on(hosts: Hosts, attempts: int, workers: int = 2) -> None:
    """Until the ranks of this attempt have made steps."""

    def going_on(lines: list[str]) -> bool:
        return sum(line.startswith("from") for line in lines) >= attempts and lines[-1].isdecimal()

    wait_for(lambda: all(going_on(hosts.noted(rank)) for rank in range(workers)), what=f"steps of attempt {attempts}")


def assert_nothing_lost(hosts: Hosts, task_id: str, attempts: int | None, workers: int = 2) -> None:
    """Stops the task; then no step of any rank was done twice or left out, and the last one is saved."""
    if attempts is not None:
        wait_going_on(hosts, attempts, workers)
    hosts.tasks().stop(task_id)
    assert hosts.wait_task(task_id).status is TaskStatus.STOPPED
    (saved,) = {max(int(line) for line in hosts.noted(rank) if line.isdecimal()) for rank in range(workers)}
    assert hosts.task(task_id).saved_step == saved
    for rank in range(workers):
        lines = hosts.noted(rank)
        begun, twice, never = finished_steps(lines)
        assert (twice, never) == ([], [])
        assert attempts in (None, begun)


@pytest.mark.slow
def test_a_drained_host_is_left_at_an_agreed_step_and_no_step_is_lost(hosts: Hosts) -> None:
    first = hosts.start_host("first")
    task_id = hosts.submit_steps(pause_s=0.02)
    wait_steps(hosts, 20)
    second = hosts.start_host("second")
    hosts.drain(first, "for a test")
    task = wait_attempt(hosts, task_id, 2)
    assert task.course.placement == (second, second)
    assert (task.course.failures, task.course.preemptions, task.course.losses) == (0, 0, 0)
    assert_nothing_lost(hosts, task_id, attempts=2)


def test_an_agent_that_is_stopped_lets_its_ranks_leave_at_an_agreed_step(hosts: Hosts) -> None:
    hosts.start_host("first", slots=1)
    task_id = hosts.submit_steps(pause_s=0.02, workers=1)
    wait_steps(hosts, 20)
    second = hosts.start_host("second", slots=1)
    hosts.kill("first", signal.SIGTERM)
    task = wait_attempt(hosts, task_id, 2)
    assert (task.course.placement, task.course.preemptions) == ((second,), 0)
    assert_nothing_lost(hosts, task_id, attempts=2, workers=1)


@pytest.mark.slow
def test_a_file_gives_notice_and_takes_it_back(hosts: Hosts, tmp_path: Path) -> None:
    file = tmp_path / "goes"
    first = hosts.start_host("first", STRATA_NOTICE_FILE=str(file))
    task_id = hosts.submit_steps(pause_s=0.02)
    wait_steps(hosts, 20)
    second = hosts.start_host("second")
    file.write_text("30")
    assert wait_attempt(hosts, task_id, 2).course.placement == (second, second)
    (told,) = [agent for agent in RecordsClient(hosts.channel()).agents() if agent.agent_id == first]
    assert (told.draining, told.deadline, told.noticed) == (f"notice file {file}", file.stat().st_mtime + 30, True)
    file.unlink()
    wait_going_on(hosts, 2)
    hosts.kill("second", signal.SIGTERM)
    assert wait_attempt(hosts, task_id, 3).course.placement == (first, first)
    assert_nothing_lost(hosts, task_id, attempts=3)


@pytest.mark.slow
def test_a_notice_is_heard_by_a_coordinator_that_was_away(hosts: Hosts, tmp_path: Path) -> None:
    file = tmp_path / "goes"
    hosts.start_host("first", STRATA_NOTICE_FILE=str(file))
    task_id = hosts.submit_steps(pause_s=0.02)
    wait_steps(hosts, 20)
    second = hosts.start_host("second")
    hosts.kill("coordinator")
    file.write_text("30")
    hosts.start("coordinator")
    assert wait_attempt(hosts, task_id, 2).course.placement == (second, second)
    assert_nothing_lost(hosts, task_id, attempts=2)


@pytest.mark.slow
def test_a_rank_that_somebody_sends_sigterm_makes_all_leave_and_start_anew(hosts: Hosts) -> None:
    hosts.start_host("first")
    task_id = hosts.submit_steps(pause_s=0.02)
    wait_steps(hosts, 20)
    os.kill(hosts.host_ranks("first")[1], signal.SIGTERM)
    task = wait_attempt(hosts, task_id, 2)
    assert (task.course.failures, task.course.preemptions) == (0, 0)
    assert_nothing_lost(hosts, task_id, attempts=2)


_DEAF = """
import time
print("deaf", flush=True)
time.sleep(600)
"""


@pytest.mark.slow
def test_a_script_that_never_asks_is_ended_before_the_deadline(hosts: Hosts, tmp_path: Path) -> None:
    first = hosts.start_host("first")
    script = tmp_path / "deaf.py"
    script.write_text(_DEAF)
    task_id = hosts.submit(name="deaf", entrypoint=("python", str(script)))
    wait_for(lambda: hosts.host_ranks("first"), what="the rank")
    hosts.drain(first, deadline=time.time() + 2.0)
    task = hosts.wait_task(task_id, TaskStatus.RECOVERING)
    assert task.course.preemptions == 1
    assert not hosts.host_ranks("first")
    waiting = wait_for(lambda: "is draining" in hosts.task(task_id).reason and hosts.task(task_id), what="the reason")
    assert waiting.reason == f"waiting for 1 slot: 0 of 2 are free on 1 local agent; {first} is draining"
    hosts.undrain(first)
    assert wait_attempt(hosts, task_id, 2).course.placement == (first,)


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_notices_at_random_moments_cost_no_step(hosts: Hosts, pytestconfig: pytest.Config) -> None:
    """The two hosts go away by turns, with 30 s each, whatever the job does just then: train, save, leave or start.
    Every tenth notice is a SIGTERM to a rank, and every twentieth finds no coordinator. `--notices 200` is the full
    measure."""
    going, staying = hosts.start_host("first"), hosts.start_host("second")
    task_id = hosts.submit_steps(pause_s=0.01)
    wait_steps(hosts, 20)
    chance = random.Random(1)
    for number in range(1, 1 + int(pytestconfig.getoption("--notices"))):
        time.sleep(chance.uniform(0.0, 3.0))  # the random moment is the test
        if number % 20 == 0:
            hosts.kill("coordinator")
            hosts.start("coordinator")
        if number % 10 == 0:
            asked = [pid for name in ("first", "second") for pid in hosts.host_ranks(name).values()]
            for pid in asked[:1]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGTERM)
            continue
        hosts.undrain(staying)
        hosts.drain(going, f"notice {number}", deadline=time.time() + 30.0)
        going, staying = staying, going
    attempts = sum(line.startswith("from") for line in hosts.noted(0))
    wait_going_on(hosts, max(attempts, 2))
    assert_nothing_lost(hosts, task_id, attempts=None)
    assert hosts.task(task_id).course.failures == 0
