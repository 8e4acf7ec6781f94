"""Hosts that go away: what runs there saves at one agreed step and goes on elsewhere, and no step is lost."""

from collections.abc import Iterator
from pathlib import Path

import pytest

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


def assert_nothing_lost(hosts: Hosts, total: int, attempts: int, workers: int = 2) -> None:
    for rank in range(workers):
        lines = hosts.noted(rank)
        assert finished_steps(lines) == (attempts, [], []), lines
        assert max(int(line) for line in lines if line.isdecimal()) == total


def test_a_drained_host_is_left_at_an_agreed_step_and_no_step_is_lost(hosts: Hosts) -> None:
    first = hosts.start_host("first")
    task_id = hosts.submit_steps(total=300, pause_s=0.02)
    wait_steps(hosts, 20)
    second = hosts.start_host("second")
    hosts.hosts().drain(first, "for a test")
    task = wait_attempt(hosts, task_id, 2)
    assert task.course.placement == (second, second)
    assert (task.course.failures, task.course.preemptions, task.course.losses) == (0, 0, 0)
    assert hosts.wait_task(task_id).status is TaskStatus.COMPLETED
    assert_nothing_lost(hosts, 300, attempts=2)
