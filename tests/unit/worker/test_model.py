"""The built-in model: its gradient is the derivative of its loss, and sums over ranks add up."""

import numpy as np
import pytest

from strata.data.table.columns import Columns
from strata.errors import DataError
from strata.worker.model import Model, learn_scheme


def _data(rows: int = 60, *, classes: bool) -> Columns:
    random = np.random.default_rng(3)
    x, y = random.normal(size=rows), random.normal(size=(rows, 2))
    label = (x > 0).astype(np.int64) if classes else x * 2 + 1
    return {"x": x, "y": y, "name": np.array(["n"] * rows, dtype=object), "label": label}


@pytest.mark.parametrize("classes", [True, False])
def test_the_gradient_is_the_derivative_of_the_loss(classes: bool) -> None:
    data = _data(classes=classes)
    scheme = learn_scheme(data, list(data), {})
    assert scheme.features == ("x", "y")
    assert scheme.num_classes == (2 if classes else 0)
    model = Model(scheme, hidden=4, seed=0)
    gradient, loss, _ = model.gradient(data)
    model.params["hidden/weight"] = model.params["hidden/weight"].copy()
    model.params["hidden/weight"][1, 2] += 1e-6
    _, moved, _ = model.gradient(data)
    assert (moved - loss) / 1e-6 == pytest.approx(gradient[1 * 4 + 2], rel=1e-3, abs=1e-5)


def test_parts_of_a_batch_add_up_to_it() -> None:
    data = _data(classes=True)
    model = Model(learn_scheme(data, list(data), {}), hidden=4, seed=0)
    whole = model.gradient(data)
    parts = [model.gradient({name: values[cut] for name, values in data.items()}) for cut in (slice(20), slice(20, 60))]
    assert np.allclose(whole[0], parts[0][0] + parts[1][0])
    empty = model.gradient({name: values[:0] for name, values in data.items()})
    assert not empty[0].any()


def test_a_saved_state_comes_back_bit_for_bit() -> None:
    data = _data(classes=True)
    scheme = learn_scheme(data, list(data), {})
    model = Model(scheme, hidden=4, seed=0)
    model.apply(model.gradient(data)[0], 0.1, 0.9)
    other = Model(scheme, hidden=4, seed=9)
    other.load(model.state())
    assert all(np.array_equal(other.params[name], value) for name, value in model.params.items())


def test_data_that_cannot_be_learned_from_is_refused_by_name() -> None:
    words: Columns = {"name": np.array(["a"], dtype=object), "label": np.array([1])}
    with pytest.raises(DataError, match="no column of numbers to learn from beside 'label'"):
        learn_scheme(words, list(words), {})
    with pytest.raises(DataError, match="target column 'name'"):
        learn_scheme(words, ["label", "name"], {"target": "name"})
    data = _data(classes=True)
    scheme = learn_scheme(data, list(data), {"num_classes": 2})
    with pytest.raises(DataError, match="holds the class 5"):
        scheme.targets({"label": np.array([0, 5])})
