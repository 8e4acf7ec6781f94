"""`wandb.config`: the run's config with attribute access; every change is told at once."""

from collections.abc import Iterable, Iterator, MutableMapping
from typing import Any, Protocol

from strata.worker.description import config_of

__all__ = ["Config", "chosen"]


class _Run(Protocol):
    """What is needed of strata's Run."""

    config: dict[str, Any]

    def update(self, **changes: Any) -> None: ...


class Config(MutableMapping[str, Any]):
    """A view of the run's own config."""

    def __init__(self, run: _Run) -> None:
        object.__setattr__(self, "_run", run)

    def __getitem__(self, name: str) -> Any:
        return self._run.config[name]

    def __setitem__(self, name: str, value: Any) -> None:
        self._run.update(config={name: value})

    def __delitem__(self, name: str) -> None:
        del self._run.config[name]
        self._run.update(config={})

    def __iter__(self) -> Iterator[str]:
        return iter(self._run.config)

    def __len__(self) -> int:
        return len(self._run.config)

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(f"config has no {name!r}; it has {', '.join(map(str, self)) or 'nothing'}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value

    def __repr__(self) -> str:
        return repr(self._run.config)

    def update(self, d: Any = None, allow_val_change: bool | None = None, **values: Any) -> None:  # type: ignore[override]
        """A dict, a dataclass or argparse's namespace, sent as one change; values may always change."""
        self._run.update(config={**config_of(d), **values})

    def setdefaults(self, d: Any) -> None:
        self.update({name: value for name, value in config_of(d).items() if name not in self})

    def as_dict(self) -> dict[str, Any]:
        return dict(self._run.config)


def chosen(config: dict[str, Any], include: Iterable[str] | None, exclude: Iterable[str] | None) -> dict[str, Any]:
    """As `config_include_keys` and `config_exclude_keys` of init say."""
    left = set(exclude or ())
    return {name: value for name, value in config.items() if name not in left and (not include or name in set(include))}
