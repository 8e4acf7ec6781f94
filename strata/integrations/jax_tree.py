"""JAX's pytrees (Flax parameters, optax states, dataclasses) as parts of a training state."""

from collections.abc import Mapping
from typing import Any

import jax

from strata.checkpoint.objects import is_stateful
from strata.errors import InvalidArgument
from strata.worker.training.trees import ArrayTree

__all__ = ["JaxTree", "jax_part"]


class JaxTree(ArrayTree):
    """Its leaves are saved by their paths. The script's tree says how they hang together: its classes are not saved."""

    def state_dict(self) -> dict[str, Any]:
        leaves, _ = jax.tree_util.tree_flatten_with_path(self.value)
        return {jax.tree_util.keystr(path): leaf for path, leaf in leaves}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        leaves, definition = jax.tree_util.tree_flatten_with_path(self.value)
        names = [jax.tree_util.keystr(path) for path, _ in leaves]
        if odd := sorted(set(names) ^ set(state)):
            raise InvalidArgument(
                f"the checkpoint and the tree of the script differ in {odd[:5]}", hint="Resume with the same model."
            )
        loaded = [_placed_like(leaf, state[name]) for name, (_, leaf) in zip(names, leaves, strict=True)]
        self.value = jax.tree_util.tree_unflatten(definition, loaded)


def _placed_like(leaf: Any, loaded: Any) -> Any:
    return jax.device_put(loaded, leaf.sharding) if isinstance(leaf, jax.Array) else loaded


def jax_part(given: Any) -> JaxTree | None:
    """A tree with JAX's arrays in it; None for anything else."""
    if is_stateful(given) or not any(isinstance(leaf, jax.Array) for leaf in jax.tree_util.tree_leaves(given)):
        return None
    return JaxTree(given)
