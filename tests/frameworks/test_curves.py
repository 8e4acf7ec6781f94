"""Every framework with the real library: killed, stopped, resumed, the losses of all ranks are bit-equal to those of a
calm run. `STRATA_PICTURES=docs/img pytest …` keeps a picture of the page of each run that was killed.
"""

import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.support.curves import Curves, Examples
from tests.support.nodes import Nodes

pytestmark = [pytest.mark.frameworks, pytest.mark.timeout(900)]

_EPOCHS = ("--epochs", "3", "--pause", "0.1")
_STEPS = ("--steps", "80", "--every", "10", "--pause", "0.1")


@dataclass(frozen=True, slots=True, kw_only=True)
class Framework:
    """An example and the curves that it must leave: the steps of each rank that logs."""

    name: str
    needs: tuple[str, ...]
    script: str
    arguments: tuple[str, ...] = _STEPS
    steps: range = range(1, 81)
    ranks: int = 2
    logging_ranks: tuple[int, ...] = (0, 1)
    environment: Mapping[str, str] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name


def _keras(backend: str) -> Framework:
    return Framework(
        name=f"keras-{backend}",
        needs=("keras", backend),
        script="train_keras.py",
        arguments=("--epochs", "12", "--pause", "0.5"),
        steps=range(1, 12 * 16 + 1),
        ranks=1,
        logging_ranks=(0,),
        environment={"KERAS_BACKEND": backend},
    )


# These have a loop of their own, which is also stopped, and killed outside of a task.
TRAINERS = (
    Framework(name="lightning", needs=("lightning",), script="train_lightning.py", arguments=_EPOCHS, steps=range(96)),
    Framework(
        name="huggingface",
        needs=("transformers",),
        script="train_huggingface.py",
        arguments=_EPOCHS,
        steps=range(1, 97),
        logging_ranks=(0,),
    ),
    Framework(
        name="accelerate",
        needs=("accelerate",),
        script="train_accelerate.py",
        arguments=_EPOCHS,
        steps=range(1, 97),
        logging_ranks=(0,),
    ),
)
LOOPS = (
    Framework(name="torch", needs=("torch",), script="train_loop_ddp.py"),
    Framework(name="dcp", needs=("torch",), script="train_torch_fsdp.py"),
    Framework(name="jax", needs=("jax",), script="train_loop_jax.py"),
    Framework(name="flax", needs=("flax",), script="train_flax.py"),
    _keras("jax"),
    _keras("torch"),
)


@pytest.fixture(scope="module")
def framework(request: pytest.FixtureRequest) -> Framework:
    found: Framework = request.param
    for library in found.needs:
        if importlib.util.find_spec(library) is None:
            pytest.skip(f"{library} is not installed (make test-frameworks)")
    return found


@pytest.fixture(scope="module")
def example(nodes: Nodes, framework: Framework) -> Examples:
    return Examples(
        nodes,
        framework.name,
        (framework.script, *framework.arguments),
        ranks=framework.ranks,
        environment=framework.environment,
    )


@pytest.fixture(scope="module")
def calm(example: Examples, framework: Framework) -> Curves:
    found = example.calm()
    assert {rank: set(curve) for rank, curve in found.items()} == {
        rank: set(framework.steps) for rank in framework.logging_ranks
    }
    assert all(curve[max(curve)] < curve[min(curve)] for curve in found.values()), "it learns"
    return found


@pytest.mark.parametrize("framework", [*TRAINERS, *LOOPS], indirect=True, ids=str)
def test_a_killed_rank_changes_no_loss(example: Examples, calm: Curves) -> None:
    assert example.killed() == calm


@pytest.mark.parametrize("framework", TRAINERS, indirect=True, ids=str)
def test_a_stop_and_a_resume_change_no_loss(example: Examples, calm: Curves) -> None:
    assert example.stopped() == calm


@pytest.mark.parametrize("framework", TRAINERS, indirect=True, ids=str)
def test_alone_a_kill_changes_no_loss(example: Examples, tmp_path: Path) -> None:
    calm, killed = example.killed_alone(tmp_path)
    assert killed == calm
