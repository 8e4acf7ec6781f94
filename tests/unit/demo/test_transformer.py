"""The gradient that is written by hand, against differences of the loss; and that it learns."""

import numpy as np
import pytest

from strata.demo.adam import Adam, scheduled
from strata.demo.train import tell
from strata.demo.transformer import Shape, Transformer

SHAPE = Shape(letters=11, context=7, width=8, heads=2, layers=2)


def letters(rows: int = 3, seed: int = 0) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    return np.random.default_rng(seed).integers(0, SHAPE.letters, (rows, SHAPE.context + 1))


@pytest.mark.parametrize("name", sorted(SHAPE.parameters()))
def test_the_gradient_of_every_parameter_is_the_slope_of_the_loss(name: str) -> None:
    model = Transformer(SHAPE, seed=3)
    batch = letters()
    vector, loss = model.gradient(batch)
    assert loss == pytest.approx(model.loss(batch))
    places = np.flatnonzero(np.isin(np.arange(vector.size), _places(model, name)))
    direction = np.zeros_like(vector)
    direction[places] = vector[places] / max(float(np.linalg.norm(vector[places])), 1e-12)
    before, far = model.vector.copy(), 1e-3
    model.vector[:] = before + far * direction
    up = model.loss(batch)
    model.vector[:] = before - far * direction
    down = model.loss(batch)
    assert (up - down) / (2 * far) == pytest.approx(float(np.linalg.norm(vector[places])), rel=2e-2)


def _places(model: Transformer, name: str) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Where a parameter lies in the vector."""
    start = 0
    for known, value in model.params.items():
        if known == name:
            return np.arange(start, start + value.size)
        start += value.size
    raise AssertionError(name)


def test_a_letter_does_not_depend_on_later_ones() -> None:
    model, first, second = Transformer(SHAPE), letters(1, seed=1), letters(1, seed=2)
    second[:, :4] = first[:, :4]
    assert (model.next_odds(first[0, :4]) == model.next_odds(second[0, :4])).all()
    both = np.concatenate([first, second])
    odds = model._forward(both[:, :-1])[0]
    assert np.abs(odds[0, :4] - odds[1, :4]).max() < 1e-6
    assert np.abs(odds[0, 5:] - odds[1, 5:]).max() > 1e-3


def test_the_same_data_gives_the_same_bits_and_a_smaller_loss() -> None:
    def trained() -> tuple[bytes, float]:
        model = Transformer(SHAPE)
        adam = Adam(model.vector)
        for step in range(1, 41):
            gradient, _ = model.gradient(letters())
            adam.apply(gradient.astype(np.float64), step, 0.01)
        return model.vector.tobytes(), model.loss(letters())

    bits, loss = trained()
    assert trained()[0] == bits
    assert loss < Transformer(SHAPE).loss(letters()) / 2


def test_the_rate_goes_up_and_then_down_to_a_tenth() -> None:
    rates = [scheduled(1.0, step, warmup=10, total=100) for step in range(1, 101)]
    assert rates[9] == max(rates) == 1.0
    assert rates[0] == pytest.approx(0.1)
    assert rates[-1] == pytest.approx(0.1)
    assert rates[10:] == sorted(rates[10:], reverse=True)


def test_a_long_gradient_is_shortened_and_its_length_told() -> None:
    short, long = np.zeros(4, np.float32), np.zeros(4, np.float32)
    assert Adam(short).apply(np.full(4, 0.5), 1, 0.1) == 1.0
    assert Adam(long).apply(np.full(4, 50.0), 1, 0.1) == 100.0
    assert (short == long).all()


def test_a_story_is_told_by_its_own_dice() -> None:
    from strata.demo.stories import ALPHABET, ROW

    model = Transformer(Shape(letters=len(ALPHABET), context=ROW - 1, width=8, heads=2, layers=1))
    np.random.seed(5)
    expected = np.random.random()
    np.random.seed(5)
    assert tell(model, 7) == tell(model, 7) != tell(model, 8)
    assert np.random.random() == expected
