"""`mode="disabled"`: a run that takes everything and keeps nothing, as people ask for in tests of their own code."""

from contextlib import AbstractContextManager
from typing import Any

__all__ = ["DisabledRun"]


class DisabledRun(AbstractContextManager["DisabledRun"]):
    """Config and summary are plain memory; every method of a run is there and does nothing."""

    disabled = True
    offline = True
    id = name = "disabled"
    project = group = job_type = notes = entity = ""
    url = None
    tags: tuple[str, ...] = ()

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = _Values(config)
        self.summary = _Values()
        self.step = 0
        self.is_over = False

    def finish(self, *_: Any, **__: Any) -> None:
        self.is_over = True

    def log(self, data: dict[str, Any], step: int | None = None, commit: bool | None = None) -> None:
        self.summary.update(data)
        self.step = step if step is not None else self.step + (commit is not False)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *_, **__: None

    def __exit__(self, *_: object) -> None:
        self.finish()


class _Values(dict[str, Any]):
    """Items that are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None

    def __setattr__(self, name: str, value: Any) -> None:
        self[name] = value
