"""The newest samples that workers say they read, for the data preview. Memory only: a look, not a record."""

import json
from collections import OrderedDict
from typing import Any

from strata.observatory.ingest.batch import Columns

__all__ = ["SampleBook", "shape_preview"]

_MAX_ENTRIES = 500


class SampleBook:
    """One entry per dataset and worker; the least recently fed falls out."""

    def __init__(self) -> None:
        self._newest: OrderedDict[tuple[str, str], dict[str, Any]] = OrderedDict()

    def take(self, columns: Columns) -> None:
        for sample in columns.samples:
            try:
                rows = json.loads(sample.rows_json)
            except ValueError:
                continue  # a sample nobody can show; the worker's metrics in the same batch still count
            key = (sample.dataset_id, sample.worker_id)
            self._newest[key] = {"epoch": sample.epoch, "position": sample.position, "rows": rows}
            self._newest.move_to_end(key)
            if len(self._newest) > _MAX_ENTRIES:
                self._newest.popitem(last=False)

    def find(self, dataset_id: str, worker_id: str | None) -> tuple[str, dict[str, Any]] | None:
        """The worker and its newest samples; of any worker when none is named."""
        for (dataset, worker), found in reversed(self._newest.items()):
            if dataset == dataset_id and worker_id in (None, worker):
                return worker, found
        return None


def shape_preview(found: dict[str, Any], count: int) -> dict[str, Any]:
    """strata.data's preview (or bare rows) as the dashboard reads it: columns with types, rows by column name."""
    body = found["rows"] if isinstance(found["rows"], dict) else {"rows": found["rows"], "columns": {}}
    rows = [row for row in body["rows"] if isinstance(row, dict)][:count]
    values = [row["values"] if isinstance(row.get("values"), dict) else row for row in rows]
    types = body.get("columns") or {}
    names = list(types) if types else list(dict.fromkeys(name for row in values for name in row))
    return {
        "epoch": found.get("epoch"),
        "position": found.get("position"),
        "columns": [{"name": name, "type": types.get(name, "") if isinstance(types, dict) else ""} for name in names],
        "rows": values,
        "origins": [{name: row.get(name) for name in ("index", "file", "row")} for row in rows],
    }
