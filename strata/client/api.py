"""`strata.Api()`: what the page shows and does, from Python, over the REST API and with the rights of its token."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from strata.client.api_run import ApiRun
from strata.client.endpoints import find_joined
from strata.client.frame import Frame
from strata.client.rest import Rest, path_part, query_of
from strata.config import Settings, load_settings
from strata.types.labels import tags_of

__all__ = ["Api", "joined"]


class Api:
    """The cluster that every command finds: STRATA_JOIN, the data folder, a `strata up` of the same user, or the one
    that was joined. What is not allowed raises PermissionDenied."""

    def __init__(self, *, data_dir: str | Path | None = None, rest: Rest | None = None) -> None:
        self._rest = rest or Rest(joined(load_settings({"data_dir": data_dir})), client="strata.Api")
        self.url = self._rest.url
        """Of the dashboard."""

    def runs(
        self,
        filter: str = "",  # noqa: A002 - the language's word
        *,
        sort: str = "",
        descending: bool = True,
        limit: int | None = None,
    ) -> list[ApiRun]:
        """Runs that a filter finds (docs/runs.md), the newest first unless `sort` says otherwise."""
        asked = {"filter": filter, "sort": sort, "descending": str(descending).lower()}
        if limit is not None:
            asked["limit"] = str(limit)
        return [ApiRun(self._rest, told) for told in self._rest.get(f"/api/runs?{query_of(asked)}")]

    def run(self, run_id: str) -> ApiRun:
        """One run by its id; NotFound when there is none."""
        return ApiRun.find(self._rest, run_id)

    def update(
        self,
        runs: Iterable[ApiRun | str],
        *,
        add_tags: Iterable[str] = (),
        remove_tags: Iterable[str] = (),
        group: str | None = None,
        archived: bool | None = None,
    ) -> int:
        """The same change for many runs, all or none; returns how many."""
        body: dict[str, Any] = {
            "run_ids": [run if isinstance(run, str) else run.id for run in runs],
            "add_tags": tags_of(add_tags),
            "remove_tags": tags_of(remove_tags),
        }
        body |= {name: value for name, value in (("group", group), ("archived", archived)) if value is not None}
        return int(self._rest.patch("/api/runs", body)["changed"])

    def sql(self, query: str) -> Frame:
        """The answer to one SELECT over metric_points, runs and logs (docs/asking.md); at most 10,000 rows."""
        answer = self._rest.post("/api/sql", {"query": query})
        names = [column["name"] for column in answer["columns"]]
        columns = zip(*answer["rows"], strict=True) if answer["rows"] else ([] for _ in names)
        return Frame(dict(zip(names, map(list, columns), strict=True)))

    def tasks(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self._rest.get("/api/tasks")
        return found

    def why(self, task_id: str, at: float | None = None) -> dict[str, Any]:
        """Why a task stands as it does: the first cause, who was hit, seconds lost, what to do, and what was seen
        (docs/why.md). `at` (Unix seconds) asks for the interruption nearest to it instead of the newest."""
        asked = "" if at is None else f"?{query_of({'at': at})}"
        verdict: dict[str, Any] = self._rest.get(f"/api/tasks/{path_part(task_id)}/why{asked}")
        return verdict

    def checkpoints(self) -> list[dict[str, Any]]:
        """Of all runs, as the page lists them."""
        found: list[dict[str, Any]] = self._rest.get("/api/checkpoints")
        return found

    def stop(self, task_id: str, *, now: bool = False) -> None:
        """Its ranks get time to save, unless `now`."""
        self._rest.post(f"/api/tasks/{path_part(task_id)}/stop{'?now=true' if now else ''}", {})

    def resume(self, task_id: str) -> int | None:
        """The step that the task goes on from; None without a checkpoint."""
        step: int | None = self._rest.post(f"/api/tasks/{path_part(task_id)}/resume", {})["from_step"]
        return step


def joined(settings: Settings) -> Settings:
    """The same, when the cluster of --join or STRATA_JOIN has been joined: once."""
    if settings.join is not None and find_joined(settings) is None:
        from strata.client.join import log_in  # here: only a user's first call needs it

        log_in(settings)
    return settings
