"""The newest samples that workers say they read, for the data preview. Memory only: a look, not a record."""

import contextlib
import json
from collections import OrderedDict
from typing import Any

from strata.observatory.answers.previews import Origin, Preview, PreviewColumn
from strata.observatory.batch.columns import Columns

__all__ = ["SampleBook", "shape_preview"]

_MAX_ENTRIES = 500
_MAX_BYTES = 32 << 20  # of all entries, as they came: parsed, they take 25 times as much


class SampleBook:
    """One entry per dataset and worker, kept as its JSON; the least recently fed fall out."""

    def __init__(self) -> None:
        self._newest: OrderedDict[tuple[str, str], tuple[int, int, str]] = OrderedDict()  # epoch, position, rows
        self._num_bytes = 0

    def take(self, columns: Columns) -> None:
        for sample in columns.samples:
            self._drop((sample.dataset_id, sample.worker_id))
            # Its fields, not the message: that would keep the whole batch.
            entry = (sample.epoch, sample.position, sample.rows_json)
            self._newest[sample.dataset_id, sample.worker_id] = entry
            self._num_bytes += len(entry[2])
            while len(self._newest) > _MAX_ENTRIES or self._num_bytes > _MAX_BYTES:
                self._drop(next(iter(self._newest)))

    def find(self, dataset_id: str, worker_id: str | None) -> tuple[str, dict[str, Any]] | None:
        """The worker and its newest samples that can be shown; of any worker when none is named."""
        for (dataset, worker), (epoch, position, rows) in reversed(self._newest.items()):
            if dataset == dataset_id and worker_id in (None, worker):
                with contextlib.suppress(ValueError, RecursionError):  # what is no JSON, nobody can show
                    return worker, {"epoch": epoch, "position": position, "rows": json.loads(rows)}
        return None

    def _drop(self, key: tuple[str, str]) -> None:
        _, _, rows = self._newest.pop(key, (0, 0, ""))
        self._num_bytes -= len(rows)


def shape_preview(
    dataset_id: str, found: dict[str, Any], count: int, worker_id: str | None, note: str | None
) -> Preview:
    """strata.data's preview (or bare rows) as the dashboard reads it: columns with types, rows by column name."""
    body = found["rows"] if isinstance(found["rows"], dict) else {"rows": found["rows"], "columns": {}}
    rows = [row for row in body["rows"] if isinstance(row, dict)][:count]
    values = [row["values"] if isinstance(row.get("values"), dict) else row for row in rows]
    types = body.get("columns") or {}
    names = list(types) if types else list(dict.fromkeys(name for row in values for name in row))
    return Preview(
        dataset_id=dataset_id,
        worker_id=worker_id,
        epoch=found.get("epoch"),
        position=found.get("position"),
        columns=[
            PreviewColumn(name=name, type=types.get(name, "") if isinstance(types, dict) else "") for name in names
        ],
        rows=values,
        origins=[Origin(index=row.get("index"), file=row.get("file"), row=row.get("row")) for row in rows],
        note=note,
    )
