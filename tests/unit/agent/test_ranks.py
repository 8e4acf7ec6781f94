"""Desired state against real processes: started once, stopped as asked, found again after the agent's death."""

import asyncio
import os
import shutil
import signal
import socket
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from strata.agent.gpus import Gpus
from strata.agent.nvml import Nvml
from strata.agent.rank_files import RankFiles, RankRecord
from strata.agent.ranks import Ranks
from strata.launchers.local import pid_of
from strata.protocol.generated import agents_pb2 as ag
from tests.support.waiting import eventually

_SLEEP = "import time; print('up', flush=True); time.sleep(60)"


class _Host:
    """Ranks over a folder, with all they report."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ranks = Ranks(RankFiles(folder / "ranks"), folder, {"STRATA_DATA_DIR": str(folder)}, Gpus(Nvml(), None))
        self.heard: list[tuple[int, bool]] = []
        self._changed = asyncio.Event()
        self.ranks.listen(self._hear)

    def _hear(self, record: RankRecord) -> None:
        self.heard.append((record.rank, record.ended))
        self._changed.set()

    def want(self, version: int, *items: ag.DesiredProcess) -> None:
        self.ranks.reconcile(ag.DesiredState(version=version, processes=items))

    async def until(self, condition: Callable[[], object]) -> None:
        async with asyncio.timeout(60):
            while not condition():
                self._changed.clear()
                await self._changed.wait()

    async def until_ended(self, count: int = 1) -> list[RankRecord]:
        await self.until(lambda: sum(record.ended for record in self.ranks.records()) >= count)
        return self.ranks.records()


def _item(
    code: str, *, rank: int = 0, attempt: int = 1, life: int = 0, stop: bool = False, grace_s: float = 5.0
) -> ag.DesiredProcess:
    return ag.DesiredProcess(
        task_id="t",
        attempt=attempt,
        rank=rank,
        argv=[sys.executable, "-c", code],
        life=life,
        env={"STRATA_INCARNATION": f"t.{attempt}.{rank}.{os.getpid()}" + f".{life}" * (life > 0), "MASTER_PORT": "0"},
        grace_s=grace_s,
        stop=stop,
        worker_id=f"t-{rank}",
    )


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[_Host]:
    host = _Host(tmp_path)
    yield host
    await host.ranks.stop_all(0.0)


async def test_a_higher_life_is_another_process_with_files_of_its_own(host: _Host) -> None:
    host.want(1, _item("print('first', flush=True); exit(9)"), _item(_SLEEP, rank=1))
    (first,) = [record for record in await host.until_ended() if record.ended]
    survivor = next(record for record in host.ranks.running())
    host.want(2, _item("print('second', flush=True)", life=1), _item(_SLEEP, rank=1))
    (second,) = [record for record in await host.until_ended() if record.ended]
    assert (first.key, second.key) == (("t", 1, 0, 0), ("t", 1, 0, 1))
    assert host.ranks.log_file(first, "stdout").read_text() == "first\n"
    assert host.ranks.log_file(second, "stdout").read_text() == "second\n"
    assert host.ranks.running() == [survivor]
    host.want(3, _item("exit(1)", life=1), _item(_SLEEP, rank=1))
    assert [record.exit_code for record in host.ranks.records() if record.ended] == [0]  # a wish twice: no third start
    assert RankFiles(host.folder / "ranks").load()[0].life == 1


async def test_an_exit_is_reported_with_its_code(host: _Host) -> None:
    host.want(1, _item("exit(3)"), _item("pass", rank=1))
    records = await host.until_ended(2)
    assert sorted((record.rank, record.exit_code) for record in records) == [(0, 3), (1, 0)]
    assert host.heard.count((0, False)) == host.heard.count((0, True)) == 1


async def test_a_repeated_wish_starts_nothing_twice(host: _Host) -> None:
    host.want(1, _item(_SLEEP))
    pid = pid_of(host.ranks.running()[0].handle)
    host.want(2, _item(_SLEEP))
    host.want(1, _item(_SLEEP, rank=1))
    assert [pid_of(record.handle) for record in host.ranks.running()] == [pid]


async def test_what_ended_is_not_started_again_and_is_forgotten_when_unwanted(host: _Host) -> None:
    host.want(1, _item("pass"))
    await host.until_ended()
    host.want(2, _item("pass"))
    assert not host.ranks.running()
    host.want(3)
    assert host.ranks.records() == []
    assert RankFiles(host.folder / "ranks").load() == []


async def test_stop_gives_grace_and_then_kills(host: _Host) -> None:
    deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(60)"
    host.want(1, _item(deaf), _item(_SLEEP, rank=1))
    logs = [host.ranks.log_file(record, "stdout") for record in host.ranks.running()]
    eventually("both are up", lambda: all(path.exists() and path.read_text() for path in logs))
    host.want(2, _item(deaf, stop=True, grace_s=0.2), _item(_SLEEP, rank=1, stop=True, grace_s=10))
    records = {record.rank: record for record in await host.until_ended(2)}
    assert records[0].exit_code == -signal.SIGKILL
    assert records[1].exit_code == -signal.SIGTERM
    assert all(record.stopped for record in records.values())


async def test_a_shorter_grace_replaces_a_longer_one(host: _Host) -> None:
    host.want(1, _item(_SLEEP))
    host.want(2, _item(_SLEEP, stop=True, grace_s=60))
    host.want(3, _item(_SLEEP, stop=True, grace_s=0))
    assert (await host.until_ended())[0].exit_code in (-signal.SIGKILL, -signal.SIGTERM)


_STANDS = "from strata.worker.stacks import print_stacks_on_signal; print_stacks_on_signal(); " + _SLEEP


async def test_a_hang_is_looked_into_once_and_ended_with_its_cause(host: _Host) -> None:
    item = _item(_STANDS)
    host.want(1, item)
    (record,) = host.ranks.running()
    log = host.ranks.log_file(record, "stdout")
    eventually("it is up", lambda: log.exists() and log.read_text())
    item.look = "1.1"
    for version in (2, 3):
        host.want(version, item)
    await host.until(lambda: record.look)
    assert (record.ended, record.look, record.where) == (False, "1.1", "<string>:1 (<module>)")
    item.hangs = "no step for 9 s at step 7"
    for version in (4, 5):
        host.want(version, item)
    await host.until_ended()
    assert (record.hung, record.exit_code) == (True, -signal.SIGKILL)
    assert record.message == "no step for 9 s at step 7; it stood in <string>:1 (<module>)"
    assert (
        host.ranks.log_file(record, "stderr").read_text().count("most recent call first") == 2
    )  # its place, then all threads
    assert RankFiles(host.folder / "ranks").load() == [record]


async def test_a_stop_of_what_never_ran_is_answered(host: _Host) -> None:
    host.want(1, _item(_SLEEP, stop=True))
    (record,) = host.ranks.records()
    assert (record.ended, record.stopped, record.exit_code) == (True, True, None)


async def test_a_program_that_is_missing_says_so(host: _Host) -> None:
    item = _item("")
    item.argv[0] = "/no/such/program"
    host.want(1, item)
    (record,) = host.ranks.records()
    assert record.unstarted
    assert "'/no/such/program' does not exist" in record.message


@pytest.mark.parametrize("variable", ["MASTER_PORT", "STRATA_GANG_PORT"])
async def test_a_meeting_port_that_is_taken_is_named(host: _Host, variable: str) -> None:
    with socket.create_server(("", 0)) as taken:
        item = _item("pass")
        item.env[variable] = str(taken.getsockname()[1])
        host.want(1, item)
    (record,) = host.ranks.records()
    assert (record.hindered, record.unstarted, record.exit_code) == (True, False, None)
    port = item.env[variable]
    assert record.message == f"port {port} ({variable}) for the ranks to meet: Address already in use"


@pytest.mark.parametrize("folder", ["logs", "ranks"])
async def test_a_file_that_the_host_cannot_write_is_named(host: _Host, folder: str) -> None:
    """As on a full disk: the output of a rank, or the agent's own note of it."""
    shutil.rmtree(host.folder / folder, ignore_errors=True)
    (host.folder / folder).write_text("in the way")
    host.want(1, _item("pass"))
    (record,) = host.ranks.records()
    assert (record.ended, record.hindered, record.unstarted, record.stopped) == (True, True, False, False)
    assert record.message.startswith(f"{host.folder / folder}/")
    assert record.message.endswith(": Not a directory")


def _kill(host: _Host, handle: str) -> None:
    """As a death that the agent which started it still sees the remains of."""
    os.kill(pid_of(handle), signal.SIGKILL)
    eventually("it is gone", lambda: host.ranks.poll(handle))


@pytest.mark.parametrize("argument", ["a\0b", "\0"])
async def test_arguments_that_no_system_takes_fail_the_rank_and_not_the_agent(host: _Host, argument: str) -> None:
    item = _item("pass")
    item.argv.append(argument)
    host.want(1, item)
    (record,) = host.ranks.records()
    assert (record.unstarted, record.message) == (True, "embedded null byte")


async def test_the_next_agent_adopts_what_runs_and_notes_what_ended(tmp_path: Path) -> None:
    before = _Host(tmp_path)
    before.want(1, _item(_SLEEP), _item(_SLEEP, rank=1), _item(_SLEEP, rank=2))
    handles = {record.rank: record.handle for record in before.ranks.running()}
    before.ranks.detach()
    for rank in (1, 2):
        _kill(before, handles[rank])
    (tmp_path / "exits").mkdir()
    (tmp_path / "exits" / f"t.1.2.{os.getpid()}").write_text("done")
    after = _Host(tmp_path)
    after.ranks.adopt()
    records = {record.rank: record for record in after.ranks.records()}
    assert [record.ended for _, record in sorted(records.items())] == [False, True, True]
    assert [records[1].exit_code, records[2].exit_code] == [None, 0]
    assert [records[1].finished, records[2].finished] == [False, True]
    _kill(before, handles[0])
    await after.until_ended(3)


async def test_a_hang_that_the_last_agent_should_have_ended_is_ended(tmp_path: Path) -> None:
    """A look of an agent that died is not repeated; a hang is ended by whoever hears of it."""
    item = _item(_STANDS)
    host = _Host(tmp_path)
    host.want(1, item)
    (record,) = host.ranks.running()
    log = host.ranks.log_file(record, "stdout")
    eventually("it is up", lambda: log.exists() and log.read_text())
    host.ranks.detach()
    after = _Host(host.folder)
    after.ranks.adopt()
    item.hangs = "no step for 9 s at step 7"
    after.want(1, item)
    (ended,) = await after.until_ended()
    assert (ended.hung, ended.message) == (True, "no step for 9 s at step 7; it stood in <string>:1 (<module>)")
    _kill(host, record.handle)


async def test_an_intent_whose_process_runs_is_adopted_by_its_tag(tmp_path: Path) -> None:
    before = _Host(tmp_path)
    before.want(1, _item(_SLEEP))
    (record,) = before.ranks.running()
    handle = record.handle
    log = before.ranks.log_file(record, "stdout")
    eventually("it is up", lambda: log.exists() and log.read_text())
    before.ranks.detach()
    record.handle = ""  # as if the agent had died between the start and its note
    RankFiles(tmp_path / "ranks").save(record)
    after = _Host(tmp_path)
    after.ranks.adopt()
    assert [found.handle for found in after.ranks.running()] == [handle]
    _kill(before, handle)
    await after.until_ended()
