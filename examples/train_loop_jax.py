"""JAX with the loop that resumes, over any number of processes. Kill any of them, at any time:

strata run --workers 2 examples/train_loop_jax.py --pause 0.05
"""

import argparse
import os
import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

import strata


def update(params: Any, velocity: Any, key: Any, x: Any) -> Any:
    """One step of SGD with momentum and dropout; the gradients are summed over all processes by JAX."""
    key, dropout = jax.random.split(key)

    def loss_of(params: Any) -> Any:
        hidden = jnp.tanh(x @ params["first"] + params["bias"])
        kept = jax.random.bernoulli(dropout, 0.9, hidden.shape)
        return jnp.mean(((hidden * kept) @ params["second"] - x.sum(axis=1, keepdims=True) / 4) ** 2)

    loss, gradients = jax.value_and_grad(loss_of)(params)
    velocity = jax.tree.map(lambda v, g: 0.9 * v - 0.02 * g, velocity, gradients)
    return jax.tree.map(jnp.add, params, velocity), velocity, key, loss


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--every", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per step, to have time for killing things")
    options = parser.parse_args()

    rank, world = int(os.environ.get("RANK", "0")), int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        address = f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}"
        jax.distributed.initialize(address, num_processes=world, process_id=rank)
    mesh = Mesh(np.array(jax.devices()), ("data",))
    rows, whole = NamedSharding(mesh, PartitionSpec("data")), NamedSharding(mesh, PartitionSpec())

    def fresh() -> Any:
        first, second = jax.random.split(jax.random.key(0))
        params = {
            "first": jax.random.normal(first, (20, 64)) / 5,
            "bias": jnp.zeros(64),
            "second": jax.random.normal(second, (64, 1)) / 8,
        }
        return params, jax.tree.map(jnp.zeros_like, params), jax.random.key(1)

    placed = {"first": rows, "bias": whole, "second": rows}  # a process holds its rows of the matrices
    params, velocity, key = jax.jit(fresh, out_shardings=(placed, placed, whole))()
    train = jax.jit(update, out_shardings=(placed, placed, whole, whole))

    with strata.training(params=params, velocity=velocity, key=key, total=options.steps, every=options.every) as job:
        for step in job:
            part = np.random.default_rng(step * world + rank).standard_normal((32, 20), dtype=np.float32)
            x = jax.make_array_from_process_local_data(rows, part)
            state = job.state
            state["params"], state["velocity"], state["key"], loss = train(
                state["params"], state["velocity"], state["key"], x
            )
            job.log(loss=float(loss))
            print(f"rank {rank} step {step} loss {float(loss).hex()}", flush=True)
            time.sleep(options.pause)


if __name__ == "__main__":
    main()
