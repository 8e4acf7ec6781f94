"""`@strata.elastic`: a training function that is called again, in the same process, when another rank was replaced."""

import functools
import sys
from collections.abc import Callable
from typing import Any, Concatenate, ParamSpec, TypeVar, overload

from strata.worker.elastic.keepers import CopyKeeper, RandomKeeper
from strata.worker.elastic.loop import run_elastic
from strata.worker.elastic.world import World

__all__ = ["elastic"]

_Given = ParamSpec("_Given")
_Result = TypeVar("_Result")


@overload
def elastic(function: Callable[Concatenate[World, _Given], _Result], /) -> Callable[_Given, _Result]: ...


@overload
def elastic(
    *, every: int = ..., backend: str = ...
) -> Callable[[Callable[Concatenate[World, _Given], _Result]], Callable[_Given, _Result]]: ...


def elastic(function: Any = None, /, *, every: int = 0, backend: str = "") -> Any:
    """The function gets the world it trains in, and is called for every new one: when a rank dies, the others keep
    their processes and go on from memory. A checkpoint is saved `every` so many commits' steps (0: never).

    Where the script has imported torch, torch.distributed is set up anew for each world, by `backend` (default: nccl
    with GPUs, else gloo); the script sets up none itself.
    """
    if function is None:
        return functools.partial(elastic, every=every, backend=backend)

    @functools.wraps(function)
    def train(*args: Any, **kwargs: Any) -> Any:
        def in_world(world: World) -> Any:
            return function(world, *args, **kwargs)

        randoms: dict[str, Any] = {"python": RandomKeeper()}
        if "torch" not in sys.modules:
            return run_elastic(in_world, None, CopyKeeper, randoms, every)
        from strata.integrations.torch_world import TorchRandom, TorchWorld  # only where torch is in use

        torch_world = TorchWorld(backend)
        return run_elastic(in_world, torch_world, torch_world.keeper_of, {**randoms, "torch": TorchRandom()}, every)

    return train
