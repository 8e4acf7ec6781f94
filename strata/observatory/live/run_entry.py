"""What is known of one run: its figures, what its owner says of it, and what people wrote, whose word wins."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from strata.types.shown import to_shown

__all__ = ["RunEntry"]


@dataclass(slots=True)
class RunEntry:
    """Owned by the run book; times are Unix milliseconds."""

    first_ms: int | None = None
    last_ms: int | None = None
    heard_ms: int = 0  # when anything of it came in here, by our own clock
    said_ms: int = 0  # when its owner last said how it stands, by its own clock
    process: tuple[str, int, int] | None = None  # host, pid and start of the process that said so
    is_gone: bool | None = None
    top_step: int | None = None
    points: int = 0
    hidden: int | None = None  # superseded points; None when none of its attempts did anything again
    series: int = 0
    details: dict[str, str] = field(default_factory=dict)
    config: dict[str, Any] = field(default_factory=dict)
    flat: dict[str, Any] = field(default_factory=dict)  # the config without nesting: `model.width`
    tags: list[str] = field(default_factory=list)
    edits: dict[str, str] = field(default_factory=dict)
    shown_tags: list[str] = field(default_factory=list)
    revision: int = 0  # rises when what is said of it changes; figures change without
    _started_ms: int = 0  # as its owner says; its first point tells better
    _config_json: str = ""

    @property
    def start_ms(self) -> int | None:
        return self.first_ms if self.first_ms is not None else self._started_ms or None

    @property
    def is_archived(self) -> bool:
        return bool(self.edits.get("archived"))

    def label(self, name: str) -> str | None:
        """What people wrote, else what its owner says."""
        return self.edits.get(name) or self.details.get(name)

    def describe(self, details: Mapping[str, str], config_json: str, tags: Sequence[str], started_ms: int) -> None:
        """What its owner says; empty fields change nothing."""
        self.say({name: value for name, value in details.items() if value})
        started_ms = min((ms for ms in (started_ms, self._started_ms) if ms), default=0)
        known = (self.tags, self._started_ms, self._config_json)
        changed = (list(tags) or self.tags, started_ms, config_json or self._config_json)
        if changed == known:
            return
        self.revision += 1
        self.tags, self._started_ms, self._config_json = changed
        self.edit({})
        if self._config_json != known[2]:
            try:
                config = json.loads(config_json)
            except (ValueError, RecursionError):  # cut off, nested too deeply, or of more digits than Python reads
                config = {"config": config_json}
            self.config = to_shown(config if isinstance(config, dict) else {"config": config})
            self.flat = dict(_flat(self.config))

    def say(self, details: Mapping[str, str]) -> None:
        self.revision += not details.items() <= self.details.items()
        self.details.update(details)

    def edit(self, changes: Mapping[str, str]) -> None:
        self.revision += not changes.items() <= self.edits.items()
        self.edits.update(changes)
        edited = self.edits.get("tags")
        self.shown_tags = self.tags if edited is None else _tags_of(edited)


def _tags_of(text: str) -> list[str]:
    try:
        found = json.loads(text)
    except ValueError:  # written into the table by hand
        return [text]
    return [str(tag) for tag in found] if isinstance(found, list) else [text]


def _flat(values: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, dict) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
