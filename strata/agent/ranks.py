"""The ranks of this host: what the coordinator wants is compared with what runs, and the difference is acted on.

Repeating a wish changes nothing. A rank that ended stays ended; only a new attempt, or a new life in the same attempt,
starts it again.
"""

import asyncio
import contextlib
import errno
import logging
import os
import shutil
import signal
import socket
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from strata.agent.code import CodeFolders
from strata.agent.gpus import Gpus, pick_cards
from strata.agent.rank_files import RankFiles, RankKey, RankRecord
from strata.agent.spares import Spares
from strata.agent.stacks import is_stopped, print_all_stacks, take_stack
from strata.errors import InvalidArgument, NotFound
from strata.launchers.base import Exit, LaunchSpec
from strata.launchers.local import LocalLauncher, pid_of
from strata.protocol.fields import to_message
from strata.protocol.generated import agents_pb2 as ag

__all__ = ["SECRETS", "Ranks", "report"]

_log = logging.getLogger(__name__)

_UNWANTED_GRACE_S = 5.0
SECRETS = frozenset({"STRATA_JOIN", "STRATA_TOKEN"})  # variables that are not for ranks

OnChange = Callable[[RankRecord], None]
Fetch = Callable[[str], bytes]


class Ranks:
    """All ranks of one agent, which lives on one loop. Their output and exit notes go below `folder`, and the code of
    their tasks, which `fetch` brings."""

    def __init__(
        self,
        files: RankFiles,
        folder: Path,
        environment: Mapping[str, str],
        gpus: Gpus,
        fetch: Fetch | None = None,
    ) -> None:
        self.spares = Spares(folder)
        self._code = CodeFolders(folder / "code", fetch or _fetch_nothing, self._act)
        self._desired, self._starting = ag.DesiredState(), False
        self._files = files
        self._folder = folder
        self._environment = environment
        self._gpus = gpus
        self._on_change: OnChange = lambda _: None
        self._launcher = LocalLauncher()
        self._records: dict[RankKey, RankRecord] = {}
        self._stopping: dict[RankKey, asyncio.TimerHandle] = {}
        self._watches: dict[RankKey, int] = {}
        self._asked: dict[RankKey, tuple[str, str]] = {}  # the look and the hang that were last acted on
        self._jobs: set[asyncio.Task[None]] = set()
        self._all_gone = asyncio.Event()
        self._version = 0

    def listen(self, on_change: OnChange) -> None:
        """From now on `on_change` hears of every start and end, once its file says so."""
        self._on_change = on_change

    # --- reading

    def records(self) -> list[RankRecord]:
        return list(self._records.values())

    def running(self) -> list[RankRecord]:
        return [record for record in self._records.values() if not record.ended]

    def poll(self, handle: str) -> Exit | None:
        """None while that process runs."""
        return self._launcher.poll(handle)

    def log_file(self, record: RankRecord | ag.DesiredProcess, stream: str) -> Path:
        name = f"{record.rank}.{record.life}.{stream}" if record.life else f"{record.rank}.{stream}"
        return self._folder / "logs" / record.task_id / str(record.attempt) / name

    # --- starting anew

    def adopt(self) -> None:
        """After a restart of the agent: ranks that still run are watched again, the others are noted as ended."""
        for record in self._files.load():
            self._records[record.key] = record
            if record.ended:
                continue
            if not record.handle:  # we died between the intent and the start, or right after it
                record.handle = self._launcher.adopt(record.incarnation) or ""
            if record.handle and self._launcher.poll(record.handle) is None:
                _log.info("adopted %s, pid %d", record.worker_id, pid_of(record.handle))
                self._watch(record)
            else:
                self._end(record, self._noted_exit(record), "it ended while no agent watched")

    def tidy(self, max_age_s: float) -> None:
        """Removes the output of tasks that are long over: the observatory has it."""
        known = {record.task_id for record in self.records()}
        folder = self._folder / "logs"
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name not in known and time.time() - path.stat().st_mtime > max_age_s:
                shutil.rmtree(path, ignore_errors=True)

    def _note(self, record: RankRecord, kind: str = "") -> Path:
        """What a rank with the SDK leaves when it has finished its work or, `.left`, goes because it was asked to."""
        return self._folder / "exits" / f"{record.incarnation}{kind}"

    def _noted_exit(self, record: RankRecord) -> int | None:
        """Only a parent learns an exit code."""
        return 0 if self._note(record).exists() else None

    # --- what is wanted

    def reconcile(self, desired: ag.DesiredState, *, starting: bool = True) -> None:
        """Starts and stops what differs. Without `starting`, nothing more is started here."""
        if desired.version <= self._version:
            return
        self._version = desired.version
        self._desired, self._starting = desired, starting
        self._code.tidy({item.code for item in desired.processes})
        self._act()

    def _act(self) -> None:
        """Does what is wished now. A rank whose code is not here yet is started when it is."""
        here = [item for item in self._desired.processes if not item.code or self._code.settle(item.code)]
        wanted = {_key(item): item for item in self._desired.processes}
        self.spares.want({item.task_id: (item, self._spec(item)) for item in here if item.spares})
        intended = [key for key in map(_key, here) if self._starting and key not in self._records]
        for key in intended:  # all of them before one starts: each is told of its neighbours' cards
            self._records[key] = self._intend(wanted[key], wanted)
        for key, item in wanted.items():
            record = self._records.get(key)
            if record is None:
                continue
            if key in intended:
                self._start(record, item, [self._records[one].gpus for one in wanted if one[0] == item.task_id])
            elif item.stop and not record.ended:
                self._stop(record, item.grace_s)
            elif not record.ended:
                self._examine(record, item)
        for key, record in list(self._records.items()):
            if key in wanted:
                continue
            if record.ended:
                self._forget(record)
            else:
                self._stop(record, _UNWANTED_GRACE_S)

    def _intend(self, item: ag.DesiredProcess, wanted: Collection[RankKey]) -> RankRecord:
        """The record of a rank to be started, with its cards."""
        key = _key(item)
        return RankRecord(
            task_id=item.task_id,
            attempt=item.attempt,
            rank=item.rank,
            worker_id=item.worker_id,
            incarnation=item.env["STRATA_INCARNATION"],
            life=item.life,
            grace_s=item.grace_s,
            gpus=pick_cards(self._gpus.cards, item.gpus, key, self._records, wanted),
        )

    def _start(self, record: RankRecord, item: ag.DesiredProcess, neighbours: Sequence[Sequence[int]]) -> None:
        if item.stop:
            record.stopped = True
            self._end(record, None, "it was stopped before it started")
            return
        spec = self._spec(item, self._gpus.environment(record.gpus, neighbours))
        try:
            self._files.save(record)  # the intent, before anything can run
            if len(record.gpus) < item.gpus:
                raise OSError(errno.EBUSY, "its host has not so many that no other rank holds", f"{item.gpus} GPUs")
            if item.code:
                self._code.use(item.code)
            _check_ports(item)
            self._launcher.prepare(spec)
            if not self._start_spare(record, spec):
                record.handle = self._launcher.start(spec)
        except (
            InvalidArgument,
            ValueError,
        ) as error:  # ValueError: a NUL byte in an argument, '=' in a variable's name
            record.unstarted = True
            self._end(record, None, str(error))
            return
        except OSError as error:  # the disk is full, a port or a card is taken: another attempt may do better
            record.hindered = True
            self._end(record, None, f"{error.filename}: {error.strerror}" if error.filename else str(error))
            return
        record.started_at = time.time()
        self._files.note(record)
        self._watch(record)
        self._on_change(record)

    def _start_spare(self, record: RankRecord, spec: LaunchSpec) -> bool:
        """Makes a warm spare the rank, if there is one. Who it is must be noted first: its environment, as the kernel
        shows it, has no tag by which a next agent would find it."""
        spare = self.spares.take(record.task_id, spec)
        if spare is None:
            return False
        record.handle = self._launcher.keep(spare.child)
        self._files.note(record, sync=False)
        became = spare.become(spec)
        spare.close(kill=not became)
        if not became:
            self._launcher.forget(record.handle)
            record.handle = ""
            self._files.note(record, sync=False)
        return became

    def _spec(self, item: ag.DesiredProcess, cards: Mapping[str, str] = MappingProxyType({})) -> LaunchSpec:
        argv = tuple(item.argv)
        if argv[0] in ("python", "python3"):
            argv = (sys.executable, *argv[1:])
        return LaunchSpec(
            argv=argv,
            tag=item.env["STRATA_INCARNATION"],
            env={**_inherited(), **self._environment, **cards, **item.env},
            working_dir=str(self._code.path(item.code) / item.working_dir) if item.code else item.working_dir,
            stdout=self.log_file(item, "stdout"),
            stderr=self.log_file(item, "stderr"),
        )

    # --- watching

    def _watch(self, record: RankRecord) -> None:
        """The kernel tells the moment the process ends, whether it is our child or was adopted."""
        try:
            descriptor = os.pidfd_open(pid_of(record.handle))
        except OSError:  # gone already
            self._on_exit(record)
            return
        self._watches[record.key] = descriptor
        asyncio.get_running_loop().add_reader(descriptor, self._on_exit, record)

    def _on_exit(self, record: RankRecord) -> None:
        ended = self._launcher.poll(record.handle)
        if ended is None:
            return
        self._unwatch(record.key)
        self._launcher.signal(record.handle, signal.SIGKILL)  # what its leader left behind in its group
        self._launcher.forget(record.handle)
        self._end(record, self._noted_exit(record) if ended.code is None else ended.code, ended.reason)

    def _unwatch(self, key: RankKey) -> None:
        descriptor = self._watches.pop(key, None)
        if descriptor is not None:
            asyncio.get_running_loop().remove_reader(descriptor)
            os.close(descriptor)
        timer = self._stopping.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _end(self, record: RankRecord, exit_code: int | None, message: str) -> None:
        record.ended, record.exit_code = True, exit_code
        record.hung = record.hung and (exit_code is None or exit_code < 0)  # it may have ended by itself meanwhile
        record.message = record.message if record.hung else message
        record.left, record.finished = self._note(record, ".left").exists(), self._note(record).exists()
        self._files.note(record)
        self._on_change(record)
        if not self.running():
            self._all_gone.set()

    def _forget(self, record: RankRecord) -> None:
        del self._records[record.key]
        self._asked.pop(record.key, None)
        self._files.remove(record.key)
        for note in ("", ".left"):
            self._note(record, note).unlink(missing_ok=True)

    # --- hangs

    def _examine(self, record: RankRecord, item: ag.DesiredProcess) -> None:
        """Does what is new in the wish: looks where the rank stands, or ends it because it hangs."""
        look, hang = self._asked.get(record.key, (record.look, ""))
        self._asked[record.key] = (item.look, item.hangs)
        job = None
        if item.hangs and item.hangs != hang:
            job = self._end_hang(record, item.hangs)
        elif item.look and item.look != look:
            job = self._look(record, item.look)
        if job is not None:
            task = asyncio.get_running_loop().create_task(job)
            self._jobs.add(task)
            task.add_done_callback(self._jobs.discard)

    async def _look(self, record: RankRecord, look: str) -> None:
        standing = await take_stack(pid_of(record.handle), self.log_file(record, "stderr"), wake=False)
        if not record.ended:
            record.look, record.where, record.waiting = look, standing.where, standing.waiting
            self._files.note(record, sync=False)
            self._on_change(record)

    async def _end_hang(self, record: RankRecord, why: str) -> None:
        """Kills it once its stacks are in its log. One that ended meanwhile has an end of its own."""
        pid, stderr = pid_of(record.handle), self.log_file(record, "stderr")
        record.suspended = is_stopped(pid)
        if not record.where or record.suspended:
            record.where = (await take_stack(pid, stderr, wake=True)).where
        if record.ended:
            return
        record.hung = True
        record.message = f"{why}; it stood in {record.where}" if record.where else why
        self._files.note(record)
        await print_all_stacks(pid, stderr)
        self._launcher.signal(record.handle, signal.SIGKILL)

    # --- stopping

    def _stop(self, record: RankRecord, grace_s: float) -> None:
        """SIGTERM now, SIGKILL when the grace is over; with none, SIGKILL now. A shorter grace replaces a longer."""
        if not record.stopped:
            record.stopped = True
            self._files.note(record)
            if grace_s > 0:
                self._launcher.signal(record.handle, signal.SIGTERM)
        loop = asyncio.get_running_loop()
        timer = self._stopping.get(record.key)
        if timer is not None and timer.when() <= loop.time() + grace_s:
            return
        if timer is not None:
            timer.cancel()
        self._stopping[record.key] = loop.call_later(grace_s, self._kill, record)

    def _kill(self, record: RankRecord) -> None:
        if not record.ended:
            _log.warning("%s did not end in time and is killed", record.worker_id)
            self._launcher.signal(record.handle, signal.SIGKILL)

    def press(self, left_s: float, span_s: float) -> None:
        """The host goes in `left_s` of `span_s`. Ranks that still run get SIGTERM when their grace begins or half of
        the time is over, and SIGKILL at its end."""
        for record in self.running():
            if left_s <= min(record.grace_s, span_s / 2):
                self._stop(record, max(0.0, left_s))

    async def stop_all(self, max_grace_s: float) -> None:
        """The host leaves: every rank gets its grace. Returns when all are gone."""
        self._all_gone.clear()
        for record in self.running():
            self._stop(record, min(record.grace_s, max_grace_s))
        if self.running():
            await self._all_gone.wait()

    def detach(self) -> None:
        """Lets the ranks run on for the next agent."""
        for key in list(self._watches):
            self._unwatch(key)


def _key(item: ag.DesiredProcess) -> RankKey:
    return item.task_id, item.attempt, item.rank, item.life


def _fetch_nothing(digest: str) -> bytes:
    raise NotFound(f"nobody brings code {digest}")


def _inherited() -> dict[str, str]:
    """Of the agent's own environment all but tokens: a rank has the secret of its attempt."""
    return {name: value for name, value in os.environ.items() if name not in SECRETS}


def _check_ports(item: ag.DesiredProcess) -> None:
    """Rank 0 hosts the meetings of the ranks: their ports must be free here. Raises OSError that names the one that is
    not."""
    for name in ("MASTER_PORT", "STRATA_GANG_PORT") if item.rank == 0 else ():
        port = int(item.env.get(name, "0"))
        if not port:
            continue
        with contextlib.closing(socket.socket()) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("", port))
            except OSError as error:
                raise OSError(error.errno, error.strerror, f"port {port} ({name}) for the ranks to meet") from None


def report(record: RankRecord) -> ag.ProcessReport:
    """As the coordinator wants to hear of it."""
    return to_message(
        ag.ProcessReport,
        record,
        pid=pid_of(record.handle) if record.handle else 0,
        running=not record.ended,
        exit_code=record.exit_code or 0,
        exit_unknown=record.ended and record.exit_code is None,
    )
