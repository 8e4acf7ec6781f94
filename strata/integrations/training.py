"""`strata.training`: a training loop that resumes by itself, alone, in a task, under torchrun or Slurm. What torch and
JAX need for it is loaded only where the script has imported them.
"""

import logging
import operator
import re
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from strata.ambient import ambient
from strata.checkpoint.manager import CheckpointManager
from strata.checkpoint.objects import object_part
from strata.data import Loader
from strata.errors import InvalidArgument
from strata.types.forks import ForkedData
from strata.worker.elastic.keepers import Keeper, LiveKeeper, Placed, RandomKeeper, RandomState, Stateful
from strata.worker.elastic.memory import Memory
from strata.worker.elastic.saves import SavePlan, Saves
from strata.worker.elastic.world import world_here
from strata.worker.environment import checkpoint_path, find_place
from strata.worker.run import Run, active_run, init
from strata.worker.training.batches import Batches
from strata.worker.training.job import Job, JobWorld
from strata.worker.training.steady import SteadyWorld
from strata.worker.training.trees import part_of

__all__ = ["training"]

_log = logging.getLogger(__name__)


def training(
    *,
    loader: Any = None,
    total: int | None = None,
    epochs: int | None = None,
    every: int = 100,
    seed: int | None = None,
    project: str = "",
    name: str = "",
    config: Mapping[str, Any] | None = None,
    path: str | Path | None = None,
    keep_count: int | None = 5,
    keep_best: tuple[str, str] | None = None,
    sliced: bool = False,
    **parts: Any,
) -> Job:
    """`with strata.training(model=model, optimizer=optimizer, loader=loader, total=1000) as job:` and in it
    `for step, batch in job:` (without a loader `for step in job:`).

    It joins the task or starts a run, loads the newest good checkpoint into the parts on every rank, counts steps up to
    `total` or for `epochs` of the loader, saves `every` so many steps behind the training, stops when it is asked to,
    and saves the last step. With `seed` each rank begins with random numbers of its own. Checkpoints lie at `path`, by
    default in the task's own place, else under `name` or the script's name; `keep_count` and `keep_best` are those of
    CheckpointManager. With `sliced` you say that nothing but the optimizers among the parts writes to what they train
    (no `p.data.clamp_()` at the head of a step): a save is then copied while the next step computes, and training
    waits for what is left of that before the optimizer's step. Inside a function with `@strata.elastic` it goes on in
    place when another rank was replaced.
    """
    total, epochs, seed = _whole("total", total), _whole("epochs", epochs), _whole("seed", seed)
    _check(parts, loader, total=total, epochs=epochs)
    known: dict[str, Stateful] = {part: _part_of(part, given) for part, given in parts.items()}
    home = str(path or _home(name))
    plan = SavePlan(every=every, path=home, keep_count=keep_count, keep_best=keep_best, sliced=sliced)
    elastic, before = world_here(), active_run()
    world: JobWorld
    if elastic is not None:
        elastic.saves.plan = plan
        world = elastic
    else:
        run = before or init(project, name, config, run_id=_run_before(plan.path))
        run.exchange = _exchange(run)
        memory = Memory(_live_keeper, _randoms())
        world = SteadyWorld(run, memory, Saves(run, memory, plan))
    _warn_of_skip(world.run, loader, parts)
    if loader is not None:
        if isinstance(loader, Loader):
            loader.join()  # it may have been made before the run
        known["loader"] = Batches(loader, world.run.world_size)
    return Job(world, known, total=total, epochs=epochs, seed=seed, owns_run=before is None, leaves=elastic is None)


def _whole(name: str, value: Any) -> int | None:
    """As Python's own int, whichever library counts."""
    try:
        number = operator.index(value) if value is not None else None
    except TypeError:
        number = -1
    if isinstance(value, bool) or (number is not None and number < 0):
        raise InvalidArgument(f"{name} is {value!r}, it must be a whole number from 0 on")
    return number


def _check(parts: Mapping[str, Any], loader: Any, *, total: int | None, epochs: int | None) -> None:
    if not parts:
        raise InvalidArgument("training() needs the parts of the state", hint="strata.training(model=model, …)")
    if epochs is not None and loader is None:
        raise InvalidArgument("epochs are counted by a loader, and none is given", hint="Give loader=…, or total=….")
    if total is None and epochs is None and loader is None:
        raise InvalidArgument("nothing says when the training ends", hint="Give total=…, or loader=… and epochs=….")


def _warn_of_skip(run: Run, loader: Any, parts: Mapping[str, Any]) -> None:
    """A fork that is to leave out batches trains on them where nobody reads by a loader that could."""
    forked: ForkedData | None = ambient.forked
    read = loader is not None or any(isinstance(part, Loader) for part in parts.values())
    if forked is not None and forked.skip and not read and run.rank == 0:
        _log.warning("the loop has no loader, so that the batches which this fork is to leave out are not left out")


def _home(name: str) -> str:
    """Where a script finds its checkpoints again: in the task's own place, else by its name."""
    place = find_place()
    if place.task_id:
        return checkpoint_path(place)
    stem = re.sub(r"[^A-Za-z0-9._-]", "-", name or Path(sys.argv[0]).stem).strip("-._") or "training"
    return checkpoint_path(replace(place, run_id=stem[:100]))


def _run_before(path: str) -> str | None:
    """The run that saved the newest checkpoint, outside of a task: its curves go on."""
    if find_place().task_id:
        return None
    with CheckpointManager(path, rank=0, world_size=1) as checkpoints:
        found = checkpoints.get_latest()
    run = None if found is None else found.metadata.get("run")
    return run if isinstance(run, str) else None


def _part_of(name: str, given: Any) -> Stateful:
    if "jax" in sys.modules:
        from strata.integrations.jax_trees import jax_part  # only where jax is in use

        if (part := jax_part(given)) is not None:
            return part
    return part_of(name, given)


def _live_keeper(name: str, part: Stateful) -> Keeper:
    return LiveKeeper(name, part if isinstance(part, Placed) else object_part(part))


def _randoms() -> dict[str, RandomState]:
    randoms: dict[str, RandomState] = {"python": RandomKeeper()}
    if "torch" in sys.modules:
        from strata.integrations.torch_world import TorchRandom  # only where torch is in use

        randoms["torch"] = TorchRandom()
    return randoms


def _exchange(run: Run) -> Any:
    if "torch" not in sys.modules or run.world_size == 1:
        return None
    from strata.integrations.torch_group import torch_group  # only where torch is in use

    return torch_group(run.rank, run.world_size)
