"""Workers who come to barriers together, again and again: who they are is looked at once."""

from collections.abc import Iterable

__all__ = ["Roll"]


class Roll:
    """Names in the order in which they are told their places."""

    __slots__ = ("_within", "names", "workers")

    def __init__(self, names: Iterable[str]) -> None:
        self.names = tuple(names)
        self.workers = frozenset(self.names)
        self._within: frozenset[str] | None = None  # the last set in which all of them were found

    def __len__(self) -> int:
        return len(self.names)

    def is_within(self, others: frozenset[str]) -> bool:
        """Whether all of them are among these."""
        if self._within is not others and self.workers <= others:
            self._within = others
        return self._within is others
