"""Flax (nnx) over several JAX processes, its arrays sharded over all of them; killed, it goes on with equal losses.

strata run --workers 2 examples/train_flax.py --pause 0.05
"""

import argparse
import os
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import strata
from strata.integrations.jax_trees import pack_tree, restore_tree


class Model(nnx.Module):  # type: ignore[misc]  # flax is not installed where types are checked
    def __init__(self, rngs: nnx.Rngs) -> None:
        self.first = nnx.Linear(20, 64, rngs=rngs)
        self.dropout = nnx.Dropout(0.1, rngs=rngs)
        self.second = nnx.Linear(64, 1, rngs=rngs)

    def __call__(self, x: Any) -> Any:
        return self.second(self.dropout(jnp.tanh(self.first(x))))


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20, help="steps between checkpoints")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    run = strata.init(project="flax")
    if run.world_size > 1:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(address, num_processes=run.world_size, process_id=run.rank)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    tx = optax.adamw(0.01)

    def fresh() -> Any:
        model = Model(nnx.Rngs(0))
        return {"model": nnx.state(model), "optimizer": tx.init(nnx.state(model, nnx.Param))}

    def placed(leaf: Any) -> Any:
        """The rows of a matrix over all devices, the rest on each of them."""
        return rows if leaf.ndim == 2 and leaf.shape[0] % len(jax.devices()) == 0 else whole

    graph = nnx.graphdef(Model(nnx.Rngs(0)))
    tree = jax.jit(fresh, out_shardings=jax.tree.map(placed, jax.eval_shape(fresh)))()

    def train_step(tree: Any, x: Any) -> Any:
        weights, rest = tree["model"].split(nnx.Param, ...)

        def loss_of(weights: Any) -> Any:
            model = nnx.merge(graph, weights, rest, copy=True)
            loss = jnp.mean((model(x) - x.sum(axis=1, keepdims=True) / 4) ** 2)
            return loss, nnx.split(model, nnx.Param, ...)[2]

        (loss, rest_after), gradients = jax.value_and_grad(loss_of, has_aux=True)(weights)
        updates, optimizer = tx.update(gradients, tree["optimizer"], weights)
        after = nnx.State.merge(optax.apply_updates(weights, updates), rest_after)
        return {"model": after, "optimizer": optimizer}, loss

    train = jax.jit(train_step)
    checkpoints = run.checkpoints()
    start = 0
    found = restore_tree(checkpoints, tree)
    if found is not None:
        tree, start = found.state, found.info.step
    print(f"process {run.rank} of {run.world_size} goes on after step {start}")
    for step in range(start + 1, options.steps + 1):
        part = np.random.default_rng(step * run.world_size + run.rank).standard_normal((32, 20), dtype=np.float32)
        tree, loss = train(tree, jax.make_array_from_process_local_data(rows, part))
        run.log({"loss": float(loss)}, step=step)
        time.sleep(options.pause)
        stopping = run.should_stop()  # for all processes at the same step
        if step % options.every == 0 or step == options.steps or stopping:
            checkpoints.save_async(pack_tree(tree), step)
        if stopping:
            break
    checkpoints.close()
    print(f"process {run.rank} done, loss {float(loss)!r}")
    run.finish()


if __name__ == "__main__":
    main()
