"""A run as `strata.Api` gives it: what is known of it, its points, and the changes that people make to it."""

import csv
import io
from collections.abc import Iterable
from typing import Any, Self

from strata.client.frame import Frame
from strata.client.rest import Rest, path_part, query_of
from strata.types.labels import tags_of
from strata.types.metrics import MAX_STEP, NO_DEVICE

__all__ = ["ApiRun"]

_NUMBERS = {"rank": int, "device": int, "step": int, "event_time_ms": int, "value": float, "attempt": int}


class ApiRun:
    """A picture of the moment it was asked for; `refresh` takes another."""

    def __init__(self, rest: Rest, told: dict[str, Any]) -> None:
        self._rest = rest
        self.info = told
        """All that GET /api/runs says of it."""

    @classmethod
    def find(cls, rest: Rest, run_id: str) -> Self:
        return cls(rest, rest.get(f"/api/runs/{path_part(run_id)}/info"))

    def __repr__(self) -> str:
        return f"<run {self.id} ({self.name}, {self.state})>"

    @property
    def id(self) -> str:
        return str(self.info["run_id"])

    @property
    def name(self) -> str:
        return self.info["name"] or self.id

    @property
    def state(self) -> str:
        """running, finished, failed, killed or lost."""
        return str(self.info["state"])

    @property
    def config(self) -> dict[str, Any]:
        return dict(self.info["config"])

    @property
    def tags(self) -> list[str]:
        return list(self.info["tags"])

    @property
    def summary(self) -> dict[str, Any]:
        """The values that the script set, and last, min and max of each metric under `<metric>.last` and so on."""
        told = self._rest.get(f"{self._path}/summary")
        figures = {
            f"{metric}.{aspect}": value for metric, one in told["metrics"].items() for aspect, value in one.items()
        }
        return {**figures, **told["values"]}

    def history(self, *metrics: str, attempts: str = "newest") -> Frame:
        """Every point as it was logged, none left out: metric, rank, step, value and more; of all metrics when none is
        named. `attempts`: of steps that were done again the newest points, the superseded ones, or all."""
        asked = [("format", "csv"), ("attempts", attempts), *(("metric", metric) for metric in metrics)]
        with self._rest.open(f"{self._path}/export?{query_of(asked)}") as answer:
            rows = csv.reader(io.TextIOWrapper(answer, encoding="utf-8", newline=""))
            names = next(rows)
            columns = list(zip(*rows, strict=True)) or [() for _ in names]
        read = {name: [_read(name, text) for text in column] for name, column in zip(names, columns, strict=True)}
        return Frame(read)

    def checkpoints(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._rest.get(f"/api/checkpoints/{path_part(self.id)}")["checkpoints"]
        return found

    def media(self, search: str = "") -> list[dict[str, Any]]:
        """The names under which the run logs pictures, tables and whatever else is no number, with kind, ranks and
        steps (docs/media.md)."""
        asked = query_of({"search": search, "limit": 10_000})
        found: list[dict[str, Any]] = self._rest.get(f"{self._path}/media?{asked}")["keys"]
        return found

    def entries(
        self, metric: str, kind: str, *, rank: int = 0, from_step: int = 0, to_step: int = MAX_STEP, limit: int = 1_000
    ) -> list[dict[str, Any]]:
        """What was logged under a name, step by step, evenly chosen where there are more than `limit`."""
        asked = {"metric": metric, "kind": kind, "rank": rank, "limit": limit}
        asked |= {"from_step": from_step, "to_step": to_step}
        found: list[dict[str, Any]] = self._rest.get(f"{self._path}/media/entries?{query_of(asked)}")["entries"]
        return found

    def file(self, name: str) -> bytes:
        """The bytes of a file that an entry names."""
        with self._rest.open(f"{self._path}/files/{path_part(name)}") as answer:
            return answer.read()

    def update(
        self,
        *,
        name: str | None = None,
        tags: Iterable[str] | None = None,
        group: str | None = None,
        notes: str | None = None,
        archived: bool | None = None,
    ) -> None:
        """What people write wins over what the script says; what is left out stays as it is."""
        said: dict[str, Any] = {"name": name, "group": group, "notes": notes, "archived": archived}
        said["tags"] = tags_of(tags) if tags is not None else None
        self.info = self._rest.patch(self._path, {key: value for key, value in said.items() if value is not None})

    def delete(self) -> None:
        """Its points, for good; not while somebody writes it."""
        self._rest.delete(self._path)

    def refresh(self) -> None:
        self.info = type(self).find(self._rest, self.id).info

    @property
    def _path(self) -> str:
        return f"/api/runs/{path_part(self.id)}"


def _read(name: str, text: str) -> Any:
    """A value of this column; None where a number is not known, or a point is of no device."""
    kind = _NUMBERS.get(name)
    if kind is None:
        return text
    number = kind(text) if text else None
    return None if name == "device" and number == NO_DEVICE else number
