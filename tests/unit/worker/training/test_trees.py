"""Dicts, lists and arrays as parts of a state: what the script holds stays true."""

from typing import Any

import numpy as np
import pytest

from strata.errors import InvalidArgument
from strata.worker.training.trees import ArrayTree, part_of


def test_a_load_fills_what_the_script_holds() -> None:
    weights, layers = np.zeros(3), [np.zeros(2)]
    tree: dict[str, Any] = {"weights": weights, "layers": layers, "count": 0, "old": 1}
    ArrayTree(tree).load_state_dict({"tree": {"weights": np.ones(3), "layers": [np.ones(2)], "count": 7}})
    assert weights.tolist() == [1, 1, 1]
    assert layers[0].tolist() == [1, 1]
    assert (tree["count"], "old" in tree) == (7, False)


def test_an_array_of_another_shape_takes_the_old_ones_place() -> None:
    tree: dict[str, Any] = {"weights": np.zeros(3)}
    ArrayTree(tree).load_state_dict({"tree": {"weights": np.float64(2) * np.ones(())}})
    assert tree["weights"].shape == ()


@pytest.mark.parametrize("given", [3, "text", object(), print, b"bytes", None])
def test_what_is_no_part_is_refused_by_its_name(given: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^thing is a .*, which is no part of a training state"):
        part_of("thing", given)
