"""A host that is slower than the others holds up a job whose ranks meet at every step: it is named, and left on request
without a lost step. Real processes.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.hosts import Hosts, finished_steps
from tests.support.nodes import wait_for

pytestmark = pytest.mark.slow

# Every rank does its part, longer on one host, and then waits for all others. Each notes the steps that it finished.
_TRAIN = """
import sys, time, numpy, strata
folder, slow = sys.argv[1:]
run = strata.init(name="straggler")
mine = 0.4 if run.place.agent_id == slow else 0.05
with run.checkpoints() as checkpoints, open(f"{folder}/{run.rank}.steps", "a", buffering=1) as ledger:
    found = checkpoints.recover()
    step = found.info.step if found else 0
    ledger.write(f"from {step}\\n")
    while not run.should_stop():
        time.sleep(mine)
        run.gang.sum(numpy.zeros(1))
        step += 1
        ledger.write(f"{step}\\n")
        run.log({"loss": 1 / step}, step=step)
    checkpoints.save({"step": numpy.array([step])}, step=step, epoch=0)
run.finish()
"""


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[Hosts]:
    (tmp_path / ".env").write_text("STRATA_STRAGGLER_AFTER=3\nSTRATA_STRAGGLER_FACTOR=2\n")
    with Hosts(tmp_path) as hosts:
        hosts.start("coordinator")
        yield hosts


def _submit(hosts: Hosts, slow: str, **spec: object) -> str:
    script = hosts.data_dir.parent / "train.py"
    script.write_text(_TRAIN)
    arguments = ("python", str(script), str(hosts.data_dir.parent), slow)
    return hosts.submit(name="train", worker_count=4, min_workers=2, entrypoint=arguments, **spec)


def _steps_of_attempt(hosts: Hosts, attempt: int) -> int:
    lines = hosts.noted(0)
    begun = [at for at, line in enumerate(lines) if line.startswith("from")]
    return len(lines) - 1 - begun[attempt - 1] if len(begun) == attempt else 0


def test_a_slow_host_is_named_and_stays_unless_it_is_asked_for(hosts: Hosts) -> None:
    agents = [hosts.start_host(name, slots=1) for name in "abcd"]
    task_id = _submit(hosts, agents[3])
    named = wait_for(lambda: (task := hosts.task(task_id)).course.slow_rank is not None and task, what="the name")
    rank = named.course.placement.index(agents[3])
    assert named.course.slow_rank == rank
    assert named.reason.startswith(f"rank {rank} on {agents[3]} holds up the others: its own part of a step takes 0.4")
    assert (named.attempt, named.course.excluded, named.course.leaving) == (1, (), "")


def test_a_slow_host_is_left_on_request_and_no_step_is_lost(hosts: Hosts) -> None:
    agents = [hosts.start_host(name, slots=1) for name in "abcd"]
    task_id = _submit(hosts, agents[3], exclude_stragglers=True, grow_after_s=0.5)
    task = wait_for(lambda: (task := hosts.task(task_id)).attempt == 2 and task, 60, "the next attempt")
    assert (sorted(task.course.placement), task.course.excluded) == (sorted(agents[:3]), (agents[3],))
    assert (task.course.failures, task.course.preemptions, task.course.slow_rank) == (0, 0, None)
    wait_for(lambda: _steps_of_attempt(hosts, 2) > 20, 60, "more steps")
    assert hosts.task(task_id).attempt == 2, "it does not grow to the host that it has left"
    begun, twice, never = finished_steps(hosts.noted(0))
    assert (begun, twice, never) == (2, [], [])
    hosts.kill_hosts("a", "b")
    task = wait_for(lambda: (task := hosts.task(task_id)).attempt == 3 and task, 60, "the attempt on what is left")
    assert sorted(task.course.placement) == sorted(agents[2:]), "slow, but better than none"
    assert task.course.excluded == ()
