"""A dict that counts what is read of it: how much work something does, whatever machine it runs on."""

from collections.abc import Iterator
from typing import Any

__all__ = ["Counted"]


class Counted(dict[str, Any]):
    """`num_read` entries were looked up or gone over by Python code since it was last set to 0."""

    num_read = 0

    def __getitem__(self, key: str) -> Any:
        self.num_read += 1
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        self.num_read += 1
        return super().get(key, default)

    def __iter__(self) -> Iterator[str]:
        for key in super().__iter__():
            self.num_read += 1
            yield key

    def values(self) -> Any:
        return (self[key] for key in dict.__iter__(self))

    def items(self) -> Any:
        return ((key, self[key]) for key in dict.__iter__(self))
