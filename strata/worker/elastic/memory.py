"""What a rank remembers of the training: its parts as of the last commit, and the step of it. Whoever trains on after a
replacement starts from there, and a newcomer takes it from a peer.

Parameters are not copied: between two commits only an optimizer changes them, and a keeper sees when it does.
"""

from collections.abc import Callable, Mapping
from typing import Any

from strata.checkpoint.objects import ObjectPart
from strata.checkpoint.slices import Block
from strata.errors import InvalidArgument
from strata.worker.elastic.keepers import Keeper, Placed, RandomState

__all__ = ["NOTHING", "Memory"]

NOTHING = -1

KeeperOf = Callable[[str, Any], Keeper]


class Memory:
    """One per process. `step` is the last commit's, NOTHING before the first."""

    def __init__(self, keeper_of: KeeperOf, randoms: Mapping[str, RandomState]) -> None:
        self._keeper_of = keeper_of
        self._randoms = randoms
        self.random: dict[str, Any] = {}  # this rank's own generators, as of the last commit
        self._keepers: dict[str, Keeper] = {}
        self.step = NOTHING

    @property
    def offered_step(self) -> int:
        """The step that this rank can give to others; NOTHING when it has none, or is in the middle of the next."""
        return self.step if all(keeper.clean for keeper in self._keepers.values()) else NOTHING

    def hold(self, parts: Mapping[str, Any]) -> None:
        """From now on these objects are the state. New ones of a known name take over what the old ones held."""
        before, self._keepers = self._keepers, {}
        offered = self.step != NOTHING and before.keys() == parts.keys() and all(item.clean for item in before.values())
        for name, part in parts.items():
            known = before.get(name)
            if known is not None and known.part is part:
                self._keepers[name] = known
                continue
            keeper = self._keepers[name] = self._keeper_of(name, part)
            if known is not None and offered:
                keeper.load(known.state())
                keeper.commit()
        if before and not offered:
            self.step = NOTHING

    def commit(self, step: int) -> None:
        """Everything is as it should be after this step."""
        for keeper in self._keepers.values():
            keeper.commit()
        self.random = {name: source.get() for name, source in self._randoms.items()}
        self.step = step

    def rewind(self) -> None:
        """Back to the last commit."""
        for keeper in self._keepers.values():
            keeper.rewind()
        self.load_random(self.random)

    def state(self) -> dict[str, Any]:
        """What all ranks have alike, as of the last commit."""
        return {name: keeper.state() for name, keeper in self._keepers.items()}

    def load(self, state: Mapping[str, Any]) -> None:
        if unknown := self._keepers.keys() - state.keys():
            raise InvalidArgument(
                f"nothing was saved of {', '.join(sorted(unknown))}; what was saved is {', '.join(sorted(state))}",
                hint="Give the parts by the names they were saved by; another name or path starts anew.",
            )
        for name, keeper in self._keepers.items():
            keeper.load(state[name])

    def block_of(self, array: str, shape: tuple[int, ...]) -> Block | None:
        """Which block of a sharded array of a checkpoint this process has, if the part that it belongs to knows."""
        for name, keeper in self._keepers.items():
            prefix = f"parts/{name}/"
            if array.startswith(prefix) and isinstance(keeper.part, Placed):
                return keeper.part.block_of(array.removeprefix(prefix), shape)
        return None

    @property
    def optimizers(self) -> list[Any]:
        """The parts that say so before they write to their parameters, as torch's optimizers do."""
        parts = [keeper.part for keeper in self._keepers.values()]
        targets = [part.target if isinstance(part, ObjectPart) else part for part in parts]
        return [target for target in targets if hasattr(target, "register_step_pre_hook")]

    def load_random(self, state: Mapping[str, Any]) -> None:
        for name, source in self._randoms.items():
            if name in state:
                source.set(state[name])

    def seed(self, number: int) -> None:
        """For a newcomer: nobody knows how far the generators of the one before it were."""
        for source in self._randoms.values():
            source.seed(number)
