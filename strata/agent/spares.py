"""Warm spares: for each task that asks for them, processes that have done the imports of its ranks and wait. A rank
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
from strata.agent.template import Template
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
    template: Template | None = None  # what makes them: imports, or is ready to be forked
    barred: set[str] = field(default_factory=set)  # packages that cannot be imported ahead of a rank
    deaths: int = 0
    next_at: float = 0.0
    said: set[str] = field(default_factory=set)

    def say(self, what: str, text: str, *values: object) -> None:
        """Once per pool and kind of trouble."""
        if what not in self.said:
            self.said.add(what)
            _log.warning(f"spares of task {self.task_id}: {text}", *values)

    def fail(self, what: str, text: str, *values: object) -> None:
        """The next one is tried after a while."""
        self.deaths += 1
        self.next_at = time.monotonic() + min(_PAUSE_S * 2 ** (self.deaths - 1), _MAX_PAUSE_S)
        self.say(what, text, *values)

    def memory_bytes(self) -> int:
        held = self.template.memory_bytes if self.template is not None else 0
        return held + sum(spare.memory_bytes for spare in self.spares)

    def keep(self, spare: Spare) -> None:
        spare.weigh()
        self.spares.append(spare)

    def lacks(self) -> bool:
        """Whether it is time for one more."""
        return len(self.spares) < self.wanted and time.monotonic() >= self.next_at

    def fork(self) -> Spare | None:
        """One more spare, if there is a template for it."""
        if self.template is None or not self.template.ready:
            return None
        spare = self.template.fork()
        if spare is None:
            self.drop_template()
        return spare

    def drop_template(self) -> None:
        if self.template is not None:
            self.template.close()
            self.template = None

    def close(self) -> None:
        self.drop_template()
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
        """A spare that can become this rank, one that waits or one made now. It is the caller's."""
        pool = self._pools.get(task_id)
        if pool is None or pool.kind != kind_of(spec):
            return None
        for spare in pool.spares:
            if spare.child.poll() is None:
                pool.spares.remove(spare)
                return spare
        return pool.fork()

    def standing(self) -> list[ag.SpareReport]:
        """How many are warm, and what memory they hold."""
        return [
            ag.SpareReport(
                task_id=pool.task_id,
                wanted=pool.wanted,
                warm=len(pool.spares),
                memory_bytes=pool.memory_bytes(),
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
            if spare.child.poll() is not None:
                pool.fail("death", "one ended with code %s; others take its place", spare.child.poll())
                pool.spares.remove(spare)
                spare.close(kill=True)
        if pool.template is not None:
            self._tend_template(pool, pool.template)

    def _tend_template(self, pool: _Pool, template: Template) -> None:
        if not template.ready:
            template.listen()
        if template.spare is not None:
            pool.keep(template.spare)
            pool.template = None
        elif template.unfit:
            pool.barred.add(template.unfit.partition(".")[0])
            text = "%s reads a rank's own variables when it is imported: left to the ranks"
            pool.say(template.unfit.partition(".")[0], text, template.unfit)
            pool.drop_template()
        elif (code := template.child.poll()) is not None:
            if not template.ready:
                pool.fail("imports", "one ended with code %s at its imports; others take its place", code)
            pool.drop_template()

    def _warm_next(self) -> None:
        """Forks cost little. Of those that import, one at a time: imports take a core, and that is the ranks'."""
        for pool in filter(_Pool.lacks, self._pools.values()):
            while len(pool.spares) < pool.wanted and (spare := pool.fork()) is not None:
                pool.keep(spare)
        if any(pool.template is not None and not pool.template.ready for pool in self._pools.values()):
            return
        for pool in filter(_Pool.lacks, self._pools.values()):
            modules = self._learned(pool)
            if modules is not None and self._has_room(pool):
                self._start(pool, modules)
                return

    def _start(self, pool: _Pool, modules: list[str]) -> None:
        try:
            pool.template = Template(pool.kind, modules, self._folder)
        except (OSError, ValueError) as error:
            pool.fail("start", "none can be started: %s", error)

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
