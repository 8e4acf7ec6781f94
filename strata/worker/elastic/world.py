"""A world as the training function sees it: who trains together now, where to go on, and the word that a step is
done.
"""

import contextlib
import logging
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from strata.checkpoint.parcel import pack, unpack
from strata.errors import InvalidArgument
from strata.types.metrics import MAX_STEP
from strata.worker.elastic.memory import NOTHING, Memory
from strata.worker.elastic.saves import Saves
from strata.worker.elastic.worlds import Framework, Worlds
from strata.worker.run import Run

__all__ = ["Restored", "World", "inside", "world_here"]

_log = logging.getLogger(__name__)
_here: "World | None" = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """Where a rank goes on: after `step`, whose state came from "memory", a "peer", a "checkpoint", or is "new"."""

    step: int
    source: str


class World:
    """The ranks that train together until one of them is replaced."""

    def __init__(self, run: Run, worlds: Worlds, memory: Memory, saves: Saves, framework: Framework | None) -> None:
        self.run = run
        self.rank = run.rank
        self.size = worlds.current.size
        self.number = worlds.current.number
        self._worlds = worlds
        self._memory = memory
        self.saves = saves
        self._framework = framework
        self._restored = False

    def restore(self, **parts: Any) -> Restored:
        """Puts all ranks into one state: that of the last step which a rank has finished and still has in memory, else
        of the newest checkpoint, else rank 0's own. Whoever has another takes it from a peer, and checks its hash.
        Collective: every rank gives the same names."""
        memory, gang = self._memory, self.run.gang
        if not parts:
            raise InvalidArgument("restore() needs the parts of the state", hint="world.restore(model=model, …)")
        memory.hold(parts)
        offered = gang.gather(memory.offered_step)
        step, source = max(offered), "memory"
        if step == NOTHING:
            with self.run.section("recovery"):
                found = self.saves.restore()
            step, source = (0, "new") if found is None else (found, "checkpoint")
            if found is None:
                memory.commit(0)  # rank 0's is everybody's
                self._take_over(0, list(range(1, self.size)))
        else:
            takers = [rank for rank, has in enumerate(offered) if has != step]
            if self.rank in takers:
                source = "peer"
                memory.seed(hash((step, self.rank, self.number)))
            else:
                memory.rewind()
            self._take_over(offered.index(step), takers)
        memory.commit(step)
        self._restored = True
        self.run.progress(step)
        if self.number:
            _log.warning("world %d: rank %d goes on after step %d, from %s", self.number, self.rank, step, source)
        return Restored(step=step, source=source)

    def _take_over(self, source: int, takers: list[int]) -> None:
        """The source's state goes to the takers. Collective."""
        mine = pack(self._memory.state()) if self.rank == source and takers else []
        data = self.run.gang.share(source, takers, mine)
        if data is not None:
            self._memory.load(unpack(data))

    def seed(self, number: int) -> None:
        """Random numbers of this rank begin anew, as of the last commit."""
        self._memory.seed(number)
        self._memory.commit(self._memory.step)

    def commit(self, step: int) -> None:
        """This rank is done with the step: what it has in memory now is where a later world goes on. Call it right
        after the optimizer's step. Saves a checkpoint when one is due; raises PeerLost when a rank has died."""
        if not self._restored:
            raise InvalidArgument("commit() comes after restore()", hint="state = world.restore(model=model, …)")
        if type(step) is not int or not 0 <= step < MAX_STEP:
            raise InvalidArgument(f"step is {step!r}, it must be a whole number from 0 on")
        self._memory.commit(step)
        if self._framework is not None:
            self.run.note_wait(self._framework.waited_s())
        self.run.progress(step)
        self._worlds.check()
        self.saves.save_if_due()

    def wrap(self, model: Any, **options: Any) -> Any:
        """The model over the ranks of this world: with torch a DistributedDataParallel, which is of no use in the
        next one. After restore()."""
        return model if self._framework is None else self._framework.wrap(model, **options)


@contextlib.contextmanager
def inside(world: World) -> Iterator[None]:
    """Inside, a training loop of this process finds its world."""
    global _here  # one process trains in one world
    _here = world
    try:
        yield
    finally:
        _here = None


def world_here() -> World | None:
    """The world of the elastic function that runs now; None outside of one."""
    return _here
