"""Keras 3 with Strata's callback; killed, it goes on at the last epoch with equal losses.

KERAS_BACKEND=jax strata run examples/train_keras.py --pause 0.5
"""

import argparse
import os
import time

os.environ.setdefault("KERAS_BACKEND", "jax")

import keras
import numpy as np

from strata.integrations.keras import StrataCallback


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds per epoch, to have time for killing things")
    options = parser.parse_args()

    keras.utils.set_random_seed(0)
    x = np.random.default_rng(0).standard_normal((512, 20), dtype=np.float32)
    y = x.sum(axis=1, keepdims=True) / 4
    layers = keras.layers
    model = keras.Sequential(
        [keras.Input((20,)), layers.Dense(64, activation="tanh"), layers.Dropout(0.1), layers.Dense(1)]
    )
    model.compile(keras.optimizers.AdamW(0.01), "mse")

    strata_callback = StrataCallback(seed=0)
    start = strata_callback.restore(model)
    print(f"goes on at epoch {start}")
    pause = keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: time.sleep(options.pause))
    callbacks = [strata_callback, pause]
    done = model.fit(x, y, epochs=options.epochs, initial_epoch=start, callbacks=callbacks, verbose=0)
    print(f"done, losses {[round(loss, 9) for loss in done.history['loss'][-3:]]}")


if __name__ == "__main__":
    main()
