"""Failure drills on a live training task: each kills one real process, or stops it, and waits for what was promised."""

import json
import os
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from strata.cli.second_host import SecondHost
from strata.client.channel import Channel
from strata.client.endpoints import Endpoints
from strata.client.records import RecordsClient
from strata.client.rest import Rest
from strata.errors import StrataError

__all__ = ["DRILLS", "SIZE_DRILLS", "Drill", "DrillResult", "Site"]

_PATIENCE_S = 60.0
_LOOK_S = 0.05


@dataclass(frozen=True, slots=True, kw_only=True)
class DrillResult:
    """How a drill went: seconds until the loss was seen and until training had gone on, and what else held."""

    passed: bool
    detected_s: float | None
    recovered_s: float | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drill:
    name: str
    promise: str
    run: Callable[["Site"], DrillResult]


class Site:
    """The cluster under the drill, seen from outside: its REST API, its pids and one task. `host` can join it."""

    def __init__(self, folder: Path, api: Rest, endpoints: Endpoints, task_id: str, host: SecondHost) -> None:
        self.host = host
        self._folder = folder
        self._api = api
        self._endpoints = endpoints
        self._task_id = task_id

    def task(self) -> dict[str, Any]:
        found: dict[str, Any] = self._api.get(f"/api/tasks/{self._task_id}")
        return found

    def workers(self) -> list[dict[str, Any]]:
        return [row for row in self._api.get("/api/workers") if row["current_task"] == self._task_id]

    def host_of_task(self) -> str:
        return str(next(row["id"] for row in self._api.get("/api/hosts") if self._task_id in row["tasks"]))

    def drain(self, host: str) -> None:
        self._api.post(f"/api/hosts/{host}/drain", {"deadline_s": 30, "reason": "a drill"})

    def undrain(self, host: str) -> None:
        self._api.post(f"/api/hosts/{host}/undrain", {})

    def step(self) -> int:
        """The highest step that any rank reports now."""
        return max((row["current_step"] or 0 for row in self.workers()), default=0)

    def points(self) -> int:
        rows = [row for row in self._api.get("/runs") if row["run_id"] == self._task_id]
        return int(rows[0]["num_points"]) if rows else 0

    def rank_pids(self) -> dict[int, int]:
        """rank → pid of the task's live ranks, as they registered."""
        with Channel(self._endpoints.grpc, access=self._endpoints.access) as channel:
            mine = RecordsClient(channel).workers(self._task_id)
        return {one.rank: int(one.metadata["pid"]) for one in mine if one.alive and "pid" in one.metadata}

    def pid_of(self, part: str) -> int:
        return int(json.loads((self._folder / f"{part}.json").read_text())["pid"])

    def kill(self, pid: int, how: int = signal.SIGKILL) -> float:
        """Returns the moment."""
        os.kill(pid, how)
        return time.monotonic()

    def wait(self, condition: Callable[[], bool]) -> float | None:
        """When the condition first held, or None if it did not in time. A part that does not answer is asked again."""
        deadline = time.monotonic() + _PATIENCE_S
        while time.monotonic() < deadline:
            try:
                if condition():
                    return time.monotonic()
            except (StrataError, OSError, ValueError, KeyError):
                pass  # the part under the drill is away: that is the drill
            time.sleep(_LOOK_S)
        return None

    def wait_for_steps(self, number: int) -> float | None:
        """Until all ranks are there and training has made that many steps more: what the page knows of ranks that have
        just been ended are steps, too."""
        if self.wait(lambda: len(self.rank_pids()) == self.task()["size"]) is None:
            return None
        start: list[int] = []

        def advanced() -> bool:
            now = self.step()
            if not start or now < start[0]:
                start[:] = [now]
            return now >= start[0] + number

        return self.wait(advanced)


def _lose_worker(how: int) -> Callable[[Site], DrillResult]:
    """By a signal that ends it, or one that stops it: then it hangs, and the task's reason must say so."""

    def run(site: Site) -> DrillResult:
        before, reasons = site.task(), list[str]()

        def is_lost() -> bool:
            task = site.task()
            reasons.append(task["reason"])
            return bool(task["attempt"] > before["attempt"] or task["status"] == "recovering")

        rank, pid = max(site.rank_pids().items())
        began = site.kill(pid, how)
        detected = site.wait(is_lost)
        running = site.wait(lambda: site.task()["status"] == "running" and site.task()["attempt"] > before["attempt"])
        recovered = site.wait_for_steps(3)
        whole = site.task()["size"] == before["size"]
        told = how == signal.SIGKILL or any(reason.startswith(f"rank {rank} h") for reason in reasons)
        passed = None not in (detected, running, recovered) and whole and told
        return _result(began, detected, recovered, passed=passed, detail=f"rank {rank} replaced; {reasons[-1]}")

    return run


def _kill_part(part: str) -> Callable[[Site], DrillResult]:
    def run(site: Site) -> DrillResult:
        pids, points, attempt = site.rank_pids(), site.points(), site.task()["attempt"]
        before = site.pid_of(part)
        killed = site.kill(before)
        back = site.wait(lambda: site.pid_of(part) != before)
        recovered = site.wait_for_steps(3)
        kept = site.rank_pids() == pids and site.task()["attempt"] == attempt
        all_points = site.wait(lambda: site.points() >= points) is not None
        detail = "the ranks never noticed" if kept else "ranks were restarted"
        if not all_points:
            detail += "; points are missing"
        passed = None not in (back, recovered) and kept and all_points
        return _result(killed, back, recovered, passed=passed, detail=detail)

    return run


def _grow(site: Site) -> DrillResult:
    before = site.task()
    site.host.join()
    joined = time.monotonic()
    seen = site.wait(lambda: "grows" in site.task()["reason"] or site.task()["size"] > before["size"])
    grown = site.wait(lambda: site.task()["size"] > before["size"] and site.task()["status"] == "running")
    recovered = site.wait_for_steps(3)
    after = site.task()
    free = after["budget"]["losses_in_all"] == before["budget"]["losses_in_all"]
    detail = f"from {before['size']} to {after['size']} ranks; {after['reason']}"
    return _result(joined, seen, recovered, passed=None not in (seen, grown, recovered) and free, detail=detail)


def _shrink(site: Site) -> DrillResult:
    before = site.task()
    killed = time.monotonic()
    site.host.vanish()
    seen = site.wait(lambda: site.task()["attempt"] > before["attempt"] or site.task()["status"] == "recovering")
    fewer = site.wait(lambda: site.task()["size"] < before["size"] and site.task()["status"] == "running")
    recovered = site.wait_for_steps(3)
    after = site.task()
    detail = f"from {before['size']} to {after['size']} ranks; {after['reason']}"
    return _result(killed, seen, recovered, passed=None not in (seen, fewer, recovered), detail=detail)


def _notice(site: Site) -> DrillResult:
    before, host = site.task(), site.host_of_task()
    given = time.monotonic()
    site.drain(host)
    left = site.wait(lambda: site.task()["attempt"] > before["attempt"] or site.task()["status"] == "recovering")
    site.undrain(host)
    running = site.wait(lambda: site.task()["status"] == "running" and site.task()["attempt"] > before["attempt"])
    recovered = site.wait_for_steps(3)
    after = site.task()
    free = all(after["budget"][name] == before["budget"][name] for name in ("failures", "losses_in_all"))
    passed = None not in (left, running, recovered) and free
    return _result(given, left, recovered, passed=passed, detail=after["reason"])


def _result(
    killed: float, detected: float | None, recovered: float | None, *, passed: bool, detail: str
) -> DrillResult:
    return DrillResult(
        passed=passed,
        detected_s=None if detected is None else detected - killed,
        recovered_s=None if recovered is None else recovered - killed,
        detail=detail,
    )


# For a task that has fewer ranks than it may have, in this order.
SIZE_DRILLS = (
    Drill(name="a host comes", promise="the task grows, no step is lost", run=_grow),
    Drill(name="that host is gone for good", promise="the task goes on with fewer ranks", run=_shrink),
)
DRILLS = (
    Drill(name="kill a worker", promise="replaced, resumes from the committed step", run=_lose_worker(signal.SIGKILL)),
    Drill(name="stop a worker", promise="named as a hang, ended, replaced", run=_lose_worker(signal.SIGSTOP)),
    Drill(name="notice: the host goes in 30 s", promise="left at an agreed step, no step is lost", run=_notice),
    Drill(name="kill the agent", promise="comes back, adopts the ranks", run=_kill_part("agent")),
    Drill(name="kill the coordinator", promise="comes back, no rank restarts", run=_kill_part("coordinator")),
    Drill(name="kill the observatory", promise="comes back, no point is lost", run=_kill_part("observatory")),
)
