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


def test_what_the_script_has_put_there_itself_is_replaced() -> None:
    tree: dict[str, Any] = {"seen": np.zeros(0), "best": np.ones(2), "scale": np.ones(())}
    part = ArrayTree(tree)
    part.load_state_dict({"tree": {"seen": np.ones(7), "best": None, "scale": np.float64(3)}})
    assert (tree["seen"].tolist(), tree["best"], tree["scale"]) == ([1] * 7, None, 3)
    tree["seen"] = np.ones(9)  # and goes back to what was saved, as after a failure elsewhere
    part.load_state_dict({"tree": {"seen": np.ones(7), "best": np.ones(5), "scale": 2.0}})
    assert (len(tree["seen"]), len(tree["best"]), tree["scale"]) == (7, 5, 2.0)


def test_lists_may_grow_and_arrays_in_tuples_are_filled() -> None:
    weights, bias = np.zeros(3), np.zeros(2)
    tree: dict[str, Any] = {"layers": [(weights, bias)], "losses": [], "pair": (1, 2)}
    layer = tree["layers"][0]
    saved = {"layers": [(np.ones(3), np.ones(2)), (np.ones(1),)], "losses": [0.5, 0.25], "pair": (3, 4)}
    ArrayTree(tree).load_state_dict({"tree": saved})
    assert (weights.tolist(), bias.tolist()) == ([1, 1, 1], [1, 1])
    assert tree["layers"][0] is layer
    assert (len(tree["layers"]), tree["losses"], tree["pair"]) == (2, [0.5, 0.25], (3, 4))


@pytest.mark.parametrize(
    ("saved", "sentence"),
    [
        ({"net": {"w": np.ones(4)}, "layers": [np.ones(2)]}, r"model\['net'\]\['w'\] has shape \(3,\) .*, and \(4,\)"),
        ({"net": {"w": np.ones(3, np.int8)}, "layers": [np.ones(2)]}, r"\['w'\] .*, and \(3,\) \(int8\) in the"),
        ({"net": {}, "layers": [np.ones(2)]}, r"\['w'\] has shape .*, and nothing in the checkpoint"),
        ({"net": {"w": [np.ones(3)]}, "layers": [np.ones(2)]}, r"\['w'\] has shape .*, and a list in the checkpoint"),
        ({"net": np.ones(3), "layers": [np.ones(2)]}, r"\['net'\]\['w'\] has shape .*, and nothing in the"),
        ({"net": {"w": np.ones(3)}, "layers": []}, r"model\['layers'\]\[0\] has shape \(2,\) .*, and nothing in"),
        ({"net": {"w": np.ones(3)}, "layers": [np.ones((2, 1))]}, r"model\['layers'\]\[0\] .*, and \(2, 1\) "),
    ],
)
def test_an_array_of_another_kind_is_refused_and_nothing_is_changed(saved: Any, sentence: str) -> None:
    weights, layer = np.zeros(3), np.zeros(2)
    tree: dict[str, Any] = {"layers": [layer], "net": {"w": weights}}
    with pytest.raises(InvalidArgument, match=sentence):
        ArrayTree(tree, "model").load_state_dict({"tree": saved})
    assert tree["net"]["w"] is weights
    assert tree["layers"][0] is layer
    assert (weights.tolist(), layer.tolist()) == ([0, 0, 0], [0, 0])


def test_a_place_with_a_long_name_is_named_in_short() -> None:
    with pytest.raises(InvalidArgument) as caught:
        ArrayTree({"x" * 5_000: np.zeros(2)}, "model").load_state_dict({"tree": {}})
    assert len(caught.value.message) < 200


def test_ten_thousand_arrays_are_filled_and_one_odd_one_is_found() -> None:
    tree = {f"w{number}": np.zeros(2) for number in range(10_000)}
    part = ArrayTree(tree, "model")
    part.load_state_dict({"tree": {name: np.full(2, np.nan) for name in tree}})
    assert all(np.isnan(array).all() for array in tree.values())
    with pytest.raises(InvalidArgument, match=r"model\['w9999'\]"):
        part.load_state_dict({"tree": {name: np.ones(2) for name in tree} | {"w9999": np.ones(3)}})


@pytest.mark.parametrize("given", [3, "text", object(), print, b"bytes", None])
def test_what_is_no_part_is_refused_by_its_name(given: Any) -> None:
    with pytest.raises(InvalidArgument, match=r"^thing is a .*, which is no part of a training state"):
        part_of("thing", given)
