"""`wandb.summary`: what the script sets, over the last value of everything that it logged."""

from collections.abc import Iterator, Mapping, MutableMapping
from typing import Any

__all__ = ["Summary"]


class Summary(MutableMapping[str, Any]):
    """Reads fall back to the last logged value; writes are the run's own."""

    def __init__(self, own: MutableMapping[str, Any]) -> None:
        object.__setattr__(self, "_own", own)
        object.__setattr__(self, "_last", {})

    def noted(self, values: Mapping[str, Any]) -> None:
        """What was logged now. It is no change: the server keeps last, min and max of every metric."""
        self._last.update(values)

    def __getitem__(self, name: str) -> Any:
        return self._own[name] if name in self._own else self._last[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._own[name] = value

    def __delitem__(self, name: str) -> None:
        del self._own[name]

    def __iter__(self) -> Iterator[str]:
        return iter({**self._last, **self._own})

    def __len__(self) -> int:
        return len({**self._last, **self._own})

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"the summary has no {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value
