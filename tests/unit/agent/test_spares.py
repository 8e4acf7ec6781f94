"""The spares of an agent, with real processes: warmed when the ranks have said what they import, handed over at the
next start, replaced when they die, and gone with their task and their agent."""

import asyncio
import contextlib
import json
import logging
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from strata.agent.gpus import Gpus
from strata.agent.nvml import Nvml
from strata.agent.rank_files import RankFiles, RankRecord
from strata.agent.ranks import Ranks
from strata.launchers.local import pid_of
from strata.protocol.generated import agents_pb2 as ag
from tests.support.waiting import PATIENCE

_SCRIPT = """
import os, sys, time
own = "becoming.py" in open("/proc/self/cmdline").read()
print("from a spare" if own else "plain", os.environ["RANK"], *sys.argv[1:], flush=True)
if sys.argv[1] == "stays":
    time.sleep(600)
sys.exit(7)
"""


class _Host:
    """An agent's ranks over a folder, with their spares kept."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "script.py").write_text(_SCRIPT)
        self.ranks = Ranks(RankFiles(folder / "ranks"), folder, {}, Gpus(Nvml(), None))
        self._keeping = asyncio.create_task(self.ranks.spares.run())
        self._version = 0

    def want(self, attempt: int, how: str = "stays", *, ranks: int = 1, spares: int = 1, task_id: str = "t") -> None:
        self._version += 1
        items = [
            ag.DesiredProcess(
                task_id=task_id,
                attempt=attempt,
                rank=rank,
                argv=["python", "script.py", how],
                env={"RANK": str(rank), "STRATA_INCARNATION": f"{task_id}.{attempt}.{rank}", "STRATA_SPARES": "1"},
                working_dir=str(self.folder),
                worker_id=f"{task_id}-{rank}",
                spares=spares,
            )
            for rank in range(ranks)
        ]
        self.ranks.reconcile(ag.DesiredState(version=self._version, processes=items))

    def learn(self, attempt: int, *modules: str, task_id: str = "t") -> None:
        (self.folder / "imports").mkdir(exist_ok=True)
        note = json.dumps({"attempt": attempt, "modules": modules})
        (self.folder / "imports" / f"{task_id}.json").write_text(note)

    def spares(self) -> list[int]:
        """Pids of the templates and spares that live, oldest first: children of this process that wait."""
        ranks = {pid_of(record.handle) for record in self.ranks.records() if record.handle}
        found = []
        for child in sorted(psutil.Process().children(), key=psutil.Process.create_time):
            with contextlib.suppress(psutil.Error):
                if child.pid not in ranks and any("becoming.py" in word for word in child.cmdline()):
                    found.append(child.pid)
        return found

    def warm(self) -> int:
        return sum(report.warm for report in self.ranks.spares.standing())

    def said(self, record: RankRecord) -> str:
        path = self.ranks.log_file(record, "stdout")
        return path.read_text() if path.exists() else ""

    def rank(self, attempt: int, rank: int = 0) -> RankRecord:
        return next(one for one in self.ranks.records() if (one.attempt, one.rank) == (attempt, rank))

    async def close(self) -> None:
        self._keeping.cancel()
        await asyncio.gather(self._keeping, return_exceptions=True)
        await self.ranks.stop_all(0.0)


async def _until(what: str, look: Callable[[], object]) -> None:
    async with asyncio.timeout(30 * PATIENCE):
        while not look():  # noqa: ASYNC110  # processes set no event
            await asyncio.sleep(0.02)


@pytest.fixture
async def host(tmp_path: Path) -> AsyncIterator[_Host]:
    host = _Host(tmp_path)
    yield host
    await host.close()
    assert host.spares() == []


async def test_the_next_attempt_comes_from_spares_and_ends_as_any_rank(host: _Host) -> None:
    host.want(1, ranks=3, spares=2)
    assert host.warm() == 0  # nobody knows yet what to import
    host.learn(1, "json", "decimal")
    await _until("two are warm", lambda: host.warm() == 2)
    (report,) = host.ranks.spares.standing()
    assert (report.task_id, report.wanted, report.warm) == ("t", 2, 2)
    assert report.memory_bytes > 1 << 20
    spares = host.spares()
    host.want(2, ranks=3, spares=2)
    assert {pid_of(host.rank(2, rank).handle) for rank in (0, 1)} < set(spares)
    await _until("all are up", lambda: all("stays" in host.said(host.rank(2, rank)) for rank in range(3)))
    said = [host.said(host.rank(2, rank)) for rank in range(3)]
    assert said == [f"from a spare {rank} stays\n" for rank in range(3)]  # the third was made when it was needed
    await _until("two are warm again", lambda: host.warm() == 2)
    os.kill(pid_of(host.rank(2).handle), signal.SIGKILL)
    await _until("its end is seen", lambda: host.rank(2).ended)
    assert host.rank(2).exit_code == -signal.SIGKILL


async def test_an_exit_code_and_a_stop_are_those_of_the_script(host: _Host) -> None:
    host.want(1, spares=2)
    host.learn(1)
    await _until("two are warm", lambda: host.warm() == 2)
    host.want(2, "ends", ranks=1, spares=2)
    await _until("it ended", lambda: host.rank(2).ended)
    assert (host.rank(2).exit_code, host.said(host.rank(2))) == (7, "from a spare 0 ends\n")
    host.want(3, spares=2)
    await _until("it is up", lambda: "stays" in host.said(host.rank(3)))
    await host.close()
    assert (host.rank(3).stopped, host.rank(3).exit_code) == (True, -signal.SIGKILL)


async def test_a_killed_spare_is_replaced_and_told_of_once(host: _Host, caplog: pytest.LogCaptureFixture) -> None:
    host.want(1)
    host.learn(1)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            await _until("one is warm", lambda: host.warm() == 1)
            os.kill(host.spares()[-1], signal.SIGKILL)
            await _until("it is seen", lambda: host.warm() == 0)
        await _until("one is warm", lambda: host.warm() == 1)
    assert len([record for record in caplog.records if "spares of task t" in record.getMessage()]) == 1
    assert not host.rank(1).ended


async def test_a_spare_killed_just_before_its_turn_costs_nothing(host: _Host) -> None:
    host.want(1)
    host.learn(1)
    await _until("one is warm", lambda: host.warm() == 1)
    os.kill(host.spares()[-1], signal.SIGKILL)
    host.want(2)
    await _until("it is up", lambda: "stays" in host.said(host.rank(2)))
    assert not host.rank(2).ended


async def test_a_template_that_is_killed_or_stands_still_is_replaced(
    host: _Host, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("strata.agent.template._FORK_S", 0.2)
    host.want(1)
    host.learn(1)
    await _until("one is warm", lambda: host.warm() == 1)
    old: set[int] = set()
    for number in (signal.SIGKILL, signal.SIGSTOP):
        old.update(host.spares())
        template, spare = host.spares()
        os.kill(template, number)
        os.kill(spare, signal.SIGKILL)
        await _until("two others", lambda: host.warm() == 1 and len(set(host.spares()) - old) == 2)


async def test_what_was_learned_is_there_for_the_next_agent(host: _Host) -> None:
    host.want(1)
    host.learn(1)
    await _until("one is warm", lambda: host.warm() == 1)
    await host.close()
    assert host.spares() == []
    assert (host.folder / "imports" / "t.json").exists()


async def test_they_end_with_their_task(host: _Host) -> None:
    host.want(1, spares=1)
    host.learn(1)
    await _until("one is warm", lambda: host.warm() == 1)
    host.ranks.reconcile(ag.DesiredState(version=99))
    assert host.spares() == []
    assert list((host.folder / "imports").iterdir()) == []


async def test_a_rank_from_a_spare_is_adopted_by_the_next_agent(host: _Host) -> None:
    host.want(1)
    host.learn(1)
    await _until("one is warm", lambda: host.warm() == 1)
    host.want(2)
    pid = pid_of(host.rank(2).handle)
    await _until("it is up", lambda: "stays" in host.said(host.rank(2)))
    host.ranks.detach()
    after = Ranks(RankFiles(host.folder / "ranks"), host.folder, {}, Gpus(Nvml(), None))
    after.adopt()
    assert [pid_of(record.handle) for record in after.running() if record.attempt == 2] == [pid]
    os.kill(pid, signal.SIGKILL)
    await _until("its end is seen", lambda: [one for one in after.records() if one.attempt == 2 and one.ended])
    await after.stop_all(0.0)
    # An agent that died would leave its children to the kernel; here they are still this process's.
    await _until("all are reaped", lambda: all(host.ranks.poll(record.handle) for record in host.ranks.records()))
    host.ranks = after


async def test_an_agent_that_dies_before_the_hand_over_leaves_a_rank_that_ended_unseen(host: _Host) -> None:
    host.want(1)
    host.learn(1)
    await _until("one is warm", lambda: host.warm() == 1)
    spec = host.ranks._spec(
        ag.DesiredProcess(
            task_id="t",
            attempt=2,
            argv=["python", "script.py", "stays"],
            env={"RANK": "0", "STRATA_INCARNATION": "t.2.0", "STRATA_SPARES": "1"},
            working_dir=str(host.folder),
        )
    )
    spare = host.ranks.spares.take("t", spec)
    assert spare is not None
    record = RankRecord(task_id="t", attempt=2, rank=0, worker_id="t-0", incarnation="t.2.0")
    record.handle = host.ranks._launcher.keep(spare.child)
    RankFiles(host.folder / "ranks").save(record)
    spare.close(kill=False)  # what the death of the agent does to it
    assert spare.child.wait() == 0
    after = Ranks(RankFiles(host.folder / "ranks"), host.folder, {}, Gpus(Nvml(), None))
    after.adopt()
    (found,) = [one for one in after.records() if one.attempt == 2]
    assert (found.ended, found.exit_code) == (True, None)
    after.detach()


async def test_a_module_that_would_read_a_ranks_variable_is_left_out(
    host: _Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    (host.folder / "site").mkdir()
    (host.folder / "site" / "reader.py").write_text("import os\nRANK = os.environ.get('RANK')")
    monkeypatch.setenv("PYTHONPATH", str(host.folder / "site"))
    host.want(1)
    host.learn(1, "json", "reader", "decimal")
    with caplog.at_level(logging.WARNING):
        await _until("one is warm", lambda: host.warm() == 1)
    assert "reader reads a rank's own variables" in caplog.text


async def test_no_memory_no_spares(
    host: _Host, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=1 << 20))
    with caplog.at_level(logging.WARNING):
        host.want(1, spares=4)
        host.learn(1)
        await _until("it is said", lambda: "no more than 0: each holds" in caplog.text)
    assert host.spares() == []
    assert "plain" in host.said(host.rank(1)) or not host.rank(1).ended


@pytest.mark.parametrize(
    "note", ["", "[]", '{"attempt": 1}', '{"attempt": 1, "modules": 5}', '{"attempt": 1, "modules": [5]}']
)
async def test_a_note_that_makes_no_sense_is_no_note(host: _Host, note: str) -> None:
    host.want(1)
    host.learn(1)
    (host.folder / "imports" / "t.json").write_text(note)
    host.want(1, task_id="u")
    host.learn(1, task_id="u")
    await _until("the other is warm", lambda: host.warm() == 1)
    assert [report.warm for report in host.ranks.spares.standing()] == [0, 1] or len(host.spares()) == 2
