"""The demo's training script, `python -m strata.demo.train` in a task: a transformer learns letter by letter to tell
stories, with the loop of five lines that every user has.
"""

import time
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

import strata
from strata.demo.adam import Adam, scheduled
from strata.demo.stories import ALPHABET, ROW, read_stories, rows
from strata.demo.transformer import Shape, Transformer

__all__ = ["main", "tell"]

_EVERY = 50  # steps from checkpoint to checkpoint
_LOOK_EVERY = 50  # steps from validation to validation, and from sample to sample
_HELD_OUT = 32  # rows per rank
_HELD_OUT_SEED = 1
_PROMPT = "\nOnce there was"
_SAMPLE = 110  # letters
_NUMBER = {letter: number for number, letter in enumerate(ALPHABET)}


def main() -> None:
    with strata.init() as run:
        config, ranks = run.config, run.world_size
        total = int(config["steps"])
        sizes = {name: int(config[name]) for name in ("width", "layers", "heads")}
        model = Transformer(Shape(letters=len(ALPHABET), context=ROW - 1, **sizes))
        adam = Adam(model.vector)
        batch_size = int(config["batch_size"])
        loader = read_stories("stories", batch_size, ranks)
        held_out = _numbers(rows(_HELD_OUT * ranks, _HELD_OUT_SEED)[run.rank :: ranks])
        began = time.perf_counter()

        with strata.training(model=model.params, optimizer=adam.state, loader=loader, total=total, every=_EVERY) as job:
            for step, batch in job:
                gradient, loss = model.gradient(_numbers(batch["text"]))
                mean = run.gang.sum(np.append(gradient, loss)) / ranks
                rate = scheduled(float(config["learning_rate"]), step, warmup=int(config["warmup"]), total=total)
                length = adam.apply(mean[:-1], step, rate)

                took_s, began = time.perf_counter() - began, time.perf_counter()
                job.log(loss_of_rank=loss, step_time=took_s)
                if run.rank == 0:
                    speed = ranks * batch_size * (ROW - 1) / took_s
                    job.log({"loss": mean[-1], "grad_norm": length, "lr": rate, "throughput/tokens_per_sec": speed})
                    job.log({"epoch": job.epoch, "progress/percent": 100 * step / total})
                if step == 1 or step % _LOOK_EVERY == 0:
                    run.barrier("validation", step)
                    with run.section("validation"):
                        validation = float(run.gang.sum(model.loss(held_out))) / ranks
                        if run.rank == 0:
                            job.log({"val/loss": validation, "sample": tell(model, step)})
                time.sleep(float(config["pause_s"]))


def _numbers(texts: Iterable[str]) -> NDArray[np.int64]:
    return np.array([[_NUMBER[letter] for letter in text] for text in texts])


def tell(model: Transformer, seed: int) -> str:
    """A story as the model tells it by now. Its dice are its own: it leaves the training's random numbers alone."""
    dice = np.random.default_rng(seed)
    told = [_NUMBER[letter] for letter in _PROMPT]
    for _ in range(_SAMPLE):
        odds = model.next_odds(np.array(told)).astype(np.float64) ** 1.25
        told.append(int(dice.choice(len(odds), p=odds / odds.sum())))
    return "".join(ALPHABET[number] for number in told).strip()


if __name__ == "__main__":
    main()
