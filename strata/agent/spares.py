"""Warm spares: for each task that asks for them, interpreters that have done the imports of its ranks and wait. A rank
that is started again becomes one of them at once. Whatever goes wrong with a spare, its rank is started plainly.
"""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from strata.agent.spare import Kind, Spare, kind_of
from strata.launchers.base import LaunchSpec
from strata.protocol.generated import agents_pb2 as ag
from strata.types.tasks import SPARE_BYTES

__all__ = ["Spares"]

_log = logging.getLogger(__name__)

_LOOK_S = 0.2
_PAUSE_S = 1.0
_MAX_PAUSE_S = 60.0


@dataclass(slots=True)
class _Pool:
    """The spares of one task on this host, and how it goes with them."""

    task_id: str
    kind: Kind
    wanted: int
    attempt: int
    spares: list[Spare] = field(default_factory=list)
    barred: set[str] = field(default_factory=set)  # packages that cannot be imported ahead of a rank
    deaths: int = 0
    next_at: float = 0.0
    said: set[str] = field(default_factory=set)

    def say(self, what: str, text: str, *values: object) -> None:
        """Once per pool and kind of trouble."""
        if what not in self.said:
            self.said.add(what)
            _log.warning(f"spares of task {self.task_id}: {text}", *values)

    def close(self) -> None:
        for spare in self.spares:
            spare.close(kill=True)
        self.spares.clear()


class Spares:
    """All spares of one agent, which lives on one loop. `folder` is the agent's: there the ranks leave word of what
    they imported."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._notes = folder / "imports"
        self._pools: dict[str, _Pool] = {}

    def want(self, tasks: Mapping[str, tuple[ag.DesiredProcess, LaunchSpec]]) -> None:
        """From now on these tasks have spares here, each of the kind that this rank of it needs; others have none."""
        for task_id in self._pools.keys() - tasks.keys():
            self._pools.pop(task_id).close()
        for path in self._notes.iterdir() if self._notes.is_dir() else ():
            if path.name.rpartition(".")[0] not in tasks:
                path.unlink(missing_ok=True)
        for task_id, (item, spec) in tasks.items():
            kind = kind_of(spec)
            pool = self._pools.get(task_id)
            if pool is not None and pool.kind != kind:
                self._pools.pop(task_id).close()
                pool = None
            if pool is not None:
                pool.attempt, pool.wanted = item.attempt, item.spares
            elif kind is not None:
                self._pools[task_id] = _Pool(task_id, kind, item.spares, item.attempt)

    def take(self, task_id: str, spec: LaunchSpec) -> Spare | None:
        """A warm spare that can become this rank. It is the caller's now."""
        pool = self._pools.get(task_id)
        for spare in pool.spares if pool is not None else ():
            if spare.warm and spare.child.poll() is None and spare.kind == kind_of(spec):
                assert pool is not None
                pool.spares.remove(spare)
                return spare
        return None

    def standing(self) -> list[ag.SpareReport]:
        """How many are warm, and what memory they hold."""
        return [
            ag.SpareReport(
                task_id=pool.task_id,
                wanted=pool.wanted,
                warm=sum(spare.warm for spare in pool.spares),
                memory_bytes=sum(spare.memory_bytes for spare in pool.spares),
            )
            for pool in self._pools.values()
        ]

    async def run(self) -> None:
        """Keeps them until it is cancelled; then all are ended. What was learned stays, for the next agent."""
        try:
            while True:
                for pool in self._pools.values():
                    self._tend(pool)
                self._warm_next()
                await asyncio.sleep(_LOOK_S)
        finally:
            for pool in self._pools.values():
                pool.close()

    def _tend(self, pool: _Pool) -> None:
        for spare in list(pool.spares):
            if not spare.warm:
                spare.listen()
            if spare.unfit:
                package = spare.unfit.partition(".")[0]
                pool.barred.add(package)
                pool.say(package, "%s reads a rank's own variables when it is imported: left to the ranks", spare.unfit)
            elif spare.child.poll() is None:
                continue
            else:
                pool.deaths += 1
                pool.next_at = time.monotonic() + min(_PAUSE_S * 2 ** (pool.deaths - 1), _MAX_PAUSE_S)
                when = "when it was warm" if spare.warm else "at its imports"
                pool.say("death", "one ended with code %s %s; others take its place", spare.child.returncode, when)
            pool.spares.remove(spare)
            spare.close(kill=True)

    def _warm_next(self) -> None:
        """One at a time: warming takes a core, and that is the ranks'."""
        if any(not spare.warm for pool in self._pools.values() for spare in pool.spares):
            return
        for pool in self._pools.values():
            if len(pool.spares) < pool.wanted and time.monotonic() >= pool.next_at:
                modules = self._learned(pool)
                if modules is not None and self._has_room(pool):
                    self._start(pool, modules)
                    return

    def _start(self, pool: _Pool, modules: list[str]) -> None:
        try:
            pool.spares.append(Spare(pool.kind, modules, self._folder))
        except (OSError, ValueError) as error:
            pool.deaths += 1
            pool.next_at = time.monotonic() + min(_PAUSE_S * 2 ** (pool.deaths - 1), _MAX_PAUSE_S)
            pool.say("start", "none can be started: %s", error)

    def _has_room(self, pool: _Pool) -> bool:
        needed = max([SPARE_BYTES, *(spare.memory_bytes for spare in pool.spares)])
        free = psutil.virtual_memory().available
        if free < 2 * needed:  # the ranks must not be killed for want of what spares hold
            pool.say(
                "memory",
                "no more than %d: each holds %d MB, %d MB are free",
                len(pool.spares),
                needed >> 20,
                free >> 20,
            )
            return False
        return True

    def _learned(self, pool: _Pool) -> list[str] | None:
        """What the ranks of the current attempt imported. None until they have: while ranks start, the cores are
        theirs."""
        with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
            told = json.loads((self._notes / f"{pool.task_id}.json").read_text())
            if told["attempt"] == pool.attempt:
                return [name for name in told["modules"] if name.partition(".")[0] not in pool.barred]
        return None
