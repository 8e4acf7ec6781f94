"""The cluster's catalog follows the store: it hears of what is removed, and of every look at all bytes."""

from pathlib import Path

import numpy as np

from strata.checkpoint import CheckpointManager, SoloCommit
from strata.errors import CoordinatorUnavailable
from tests.support.waiting import eventually


class _Catalog(SoloCommit):
    """A coordinator with a catalog, which cannot be reached at times."""

    def __init__(self) -> None:
        super().__init__()
        self.heard: list[int] = []
        self.checks: list[tuple[int, str]] = []
        self.away = False

    def removed(self, step: int, reason: str) -> None:
        assert reason
        if self.away:
            raise CoordinatorUnavailable("nobody there")
        self.heard.append(step)

    def held(self) -> frozenset[int]:
        return frozenset()

    def checked(self, step: int, attempt: str, damage: str) -> None:
        if self.away:
            raise CoordinatorUnavailable("nobody there")
        self.checks.append((step, damage))


def test_a_catalog_hears_of_what_is_removed_sooner_or_later(tmp_path: Path) -> None:
    catalog = _Catalog()
    with CheckpointManager(tmp_path, keep_count=2, coordinator=catalog) as manager:
        for step in range(5):
            manager.save(b"x", step=step)
            manager.wait()
            catalog.away = step == 3
        assert catalog.heard == [0, 1]
        catalog.away = True
        manager.remove(4)
        manager.remove(3)
        manager.save(b"again", step=4)  # there again: nobody may be told that it is gone
        manager.wait()
        assert catalog.heard == [0, 1]
        catalog.away = False
        manager.save(b"x", step=5)
        manager.wait()
        assert catalog.heard == [0, 1, 2, 3]


def test_a_catalog_hears_of_every_look_at_all_bytes(tmp_path: Path) -> None:
    """By a load, by `verify` and by the scrub; a part of the arrays tells nothing of the rest."""
    catalog = _Catalog()
    with CheckpointManager(tmp_path, coordinator=catalog, scrub_mb_s=1000.0) as manager:
        for step in (1, 2):
            manager.save({"a": np.ones(4) * step, "b": np.ones(4)}, step=step)
            eventually("the scrub", lambda: catalog.checks)
            assert catalog.checks == [(step, "")]
            catalog.checks.clear()
        assert manager.show(2).verified is True
        manager.load(names=["a"])
        assert catalog.checks == []
        manager.load()
        manager.verify(1)
        assert catalog.checks == [(2, ""), (1, "")]
        file = next(tmp_path.rglob("step-000000000002/**/*.safetensors"))
        file.write_bytes(file.read_bytes()[:-1] + b"!")
        assert manager.load()["a"][0] == 1.0
        (step, damage), good = catalog.checks[2:]
        assert (step, good) == (2, (1, ""))
        assert f"of {file}" in damage
        assert "does not match its hash" in damage
        shown = manager.show(2)
        assert (shown.verified, shown.reason) == (False, damage)
        catalog.away = True
        manager.verify(1)  # nobody there to hear of it is no failure


def test_what_another_rank_cannot_load_may_be_saved_again(tmp_path: Path) -> None:
    with CheckpointManager(tmp_path) as manager:
        for step in (1, 2, 3):
            manager.save({"a": np.ones(4) * step}, step=step)
        recovery = manager.recover(lambda step: [step, 1])
        assert recovery is not None
        assert recovery.info.step == 1
        for step in (2, 3):
            manager.save({"a": np.ones(4) * 10 * step}, step=step)
        assert manager.load()["a"][0] == 30.0
