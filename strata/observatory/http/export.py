"""GET /api/runs/{run}/export: the raw points as a file."""

import tempfile
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query
from starlette.background import BackgroundTask
from starlette.responses import FileResponse

from strata.errors import NotFound
from strata.observatory.http.parts import Parts
from strata.observatory.http.runs import Attempts, Inherited
from strata.observatory.live.lineage import lineage_of
from strata.observatory.transfer.export import Format, export_run
from strata.types.names import check_name

__all__ = ["export_router"]

_TYPES = {"csv": "text/csv", "parquet": "application/vnd.apache.parquet"}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
_FILES: dict[int | str, dict[str, Any]] = {200: {"content": dict.fromkeys(_TYPES.values(), _BINARY)}}


def export_router(parts: Parts) -> APIRouter:
    """Written to a temporary file first: a failure half-way is an error, not half a file."""
    router = APIRouter(tags=["runs"])

    @router.get("/api/runs/{run_id}/export", response_class=FileResponse, responses=_FILES)
    async def export(
        run_id: str,
        format: Format = "csv",  # noqa: A002 - the query's word
        attempts: Attempts = "newest",
        inherited: Inherited = False,
        metric: Annotated[list[str] | None, Query(description="repeat it for more; all when it is left out")] = None,
    ) -> FileResponse:
        check_name("run_id", run_id)
        if run_id in parts.live.runs.deleted:  # a few of its rows may still wait to be removed
            raise NotFound(f"there is no run {run_id!r}", hint="GET /runs lists them.")
        with tempfile.NamedTemporaryFile(suffix=f".{format}", delete=False) as file:
            target = Path(file.name)
        try:
            await parts.curves.settle(run_id)
            before = lineage_of(parts.live.runs, run_id) if inherited else []
            which = parts.curves.whole(run_id) if attempts == "newest" and not before else attempts
            for origin in before:
                await parts.curves.settle(origin.run_id)
            upto = {origin.run_id: origin.step for origin in reversed(before)}
            await export_run(parts.store, {**upto, run_id: None}, target, format, which, metric)
        except BaseException:
            _remove(target)
            raise
        return FileResponse(
            target,
            media_type=_TYPES[format],
            filename=f"{run_id}.{format}",
            background=BackgroundTask(_remove, target),
        )

    return router


def _remove(file: Path) -> None:
    file.unlink(missing_ok=True)
