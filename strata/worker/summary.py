"""`run.summary["best"] = 0.93`: values of the run as a whole, set by its script, shown beside its metrics."""

from collections.abc import Callable, Iterator, MutableMapping
from typing import Any

__all__ = ["Summary"]


class Summary(MutableMapping[str, Any]):
    """What this process has set; `tell` sends every change. It never raises for a value: what cannot be sent is
    counted."""

    def __init__(self, tell: Callable[[str, Any], None]) -> None:
        self._tell = tell
        self._values: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        return self._values[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._values[name] = value
        self._tell(str(name), value)

    def __delitem__(self, name: str) -> None:
        del self._values[name]
        self._tell(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Summary({self._values!r})"
