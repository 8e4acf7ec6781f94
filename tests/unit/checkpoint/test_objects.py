"""A checkpoint is loaded straight into objects that have `state_dict` and `load_state_dict`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from strata.checkpoint import CheckpointManager
from strata.errors import CheckpointNotFound, InvalidArgument


class _Thing:
    """As models and schedulers are."""

    def __init__(self, **values: Any) -> None:
        self.values = values

    def state_dict(self) -> dict[str, Any]:
        return dict(self.values)

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.values = dict(state)


def test_an_object_is_filled_by_its_names(tmp_path: Path) -> None:
    model, other = _Thing(w=np.ones(3), n=2), _Thing(x=1)
    with CheckpointManager(tmp_path) as manager:
        manager.save({"parts": {"model": model.state_dict(), "other": other.state_dict()}}, 1)
        fresh = _Thing(w=np.zeros(3), n=0)
        assert manager.load(into=fresh) is fresh
        assert (fresh.values["w"].tolist(), fresh.values["n"]) == ([1, 1, 1], 2)
        both = {"model": _Thing(w=None, n=None), "other": _Thing(x=0)}
        manager.load(1, into=both)
        assert (both["model"].values["n"], both["other"].values) == (2, {"x": 1})
        with pytest.raises(CheckpointNotFound, match=r"no state with the names of a .*_Thing"):
            manager.load(into=_Thing(y=1))
        with pytest.raises(CheckpointNotFound, match="no part named 'optimizer'"):
            manager.load(into={"optimizer": other})
        with pytest.raises(InvalidArgument, match=r"into is a builtins\.int, which cannot be filled"):
            manager.load(into=3)
        manager.save({"a": {"x": 1}, "b": {"x": 2}}, 2)
        with pytest.raises(InvalidArgument, match=r"several parts of the checkpoint .*\['a', 'b'\]"):
            manager.load(into=other)
