"""Calls a training function for every world in which this process takes part, until it returns."""

import logging
import traceback
from collections.abc import Callable, Mapping
from typing import TypeVar

from strata.worker.elastic.keepers import RandomState
from strata.worker.elastic.memory import KeeperOf, Memory
from strata.worker.elastic.saves import SavePlan, Saves
from strata.worker.elastic.world import World, inside
from strata.worker.elastic.worlds import Framework, Worlds
from strata.worker.run import init

__all__ = ["run_elastic"]

_log = logging.getLogger(__name__)

_Result = TypeVar("_Result")


def run_elastic(
    function: Callable[[World], _Result],
    framework: Framework | None,
    keeper_of: KeeperOf,
    randoms: Mapping[str, RandomState],
    every: int,
) -> _Result:
    """Returns what the function returns when it has come to its end on all ranks. An error that no death explains goes
    to the caller."""
    run = init()
    memory = Memory(keeper_of, randoms)
    saves = Saves(run, memory, SavePlan(every=every))
    worlds = Worlds(run, framework)
    with worlds.taking_part():
        while True:
            try:
                worlds.enter()
                world = World(run, worlds, memory, saves, framework)
                with inside(world):
                    result = function(world)
                saves.finish()
                run.gang.gather(0)  # nobody goes before all are through: a rank that dies now is still replaced
                break
            except Exception as error:
                if not worlds.explains(error):
                    raise
                said = f"{type(error).__name__}: {error}".partition("\n")[0]
                _log.warning("%s; this rank waits for the next world", said[:300])
                worlds.abandon()  # at once, so that nobody waits for this rank where it no longer is
                traceback.clear_frames(error.__traceback__)  # what the function held belongs to the old world
                if not worlds.wait_for_next():
                    raise
    worlds.leave()
    saves.close()
    return result
