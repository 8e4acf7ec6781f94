"""What the REST API says and what the page shows, side by side."""

import json
import re
from typing import Any
from urllib.request import Request, urlopen

import grpc
from playwright.sync_api import Locator, Page, expect

from strata.client.channel import Channel
from strata.client.records import RecordsClient
from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.support.cluster import Cluster
from tests.support.waiting import eventually

__all__ = ["Site", "finished_run", "number", "row", "stat"]


def number(text: str) -> float:
    """The first number in a text as the dashboard writes it."""
    found = re.search(r"[−-]?[\d,]+(\.\d+)?(e[−-]?\d+)?", text)
    assert found, f"no number in {text!r}"
    return float(found.group().replace(",", "").replace("−", "-"))


def stat(page: Page, label: str) -> Locator:
    """The big number under its label."""
    return page.locator(f"main p:text-is('{label}') + p").first


def row(page: Page, table: str, text: str) -> Locator:
    return page.get_by_role("region", name=table, exact=True).get_by_role("row").filter(has_text=text).first


class Site:
    """A running cluster with one training task, as its API and its pages show it."""

    def __init__(self, cluster: Cluster, task: str) -> None:
        self.cluster = cluster
        self.task = task

    @property
    def url(self) -> str:
        return self.cluster.endpoints["http"]

    def open(self, page: Page, path: str) -> None:
        page.goto(self.url + path)
        self.expect_live(page)

    def expect_live(self, page: Page) -> None:
        expect(page.get_by_test_id("connection")).to_have_attribute("data-state", "live")

    def get(self, path: str) -> Any:
        with urlopen(f"{self.url}{path}", timeout=60) as response:
            return json.load(response)

    def post(self, path: str, body: dict[str, Any]) -> Any:
        headers = {"Content-Type": "application/json"}
        with urlopen(Request(f"{self.url}{path}", json.dumps(body).encode(), headers), timeout=60) as response:
            return json.load(response)

    def workers(self) -> list[dict[str, Any]]:
        mine = [one for one in self.get("/api/workers") if one["current_task"] == self.task]
        return sorted(mine, key=lambda one: one["rank"])

    def active(self) -> list[dict[str, Any]]:
        return [one for one in self.workers() if one["status"] in ("active", "checkpointing") and one["current_step"]]

    def status(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/tasks/{self.task}")
        return found

    def course(self) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/api/tasks/{self.task}/course")
        return found

    def newest_checkpoint(self) -> dict[str, Any] | None:
        done = [
            one for one in self.get("/api/checkpoints") if one["task_id"] == self.task and one["status"] == "completed"
        ]
        return max(done, key=lambda one: one["created_at_ms"], default=None)

    def series(self, metric: str, **query: Any) -> dict[str, Any]:
        """Rank 0's points; up to 2,000 as they were logged, more in buckets."""
        words = "".join(f"&{key}={value}" for key, value in query.items())
        answer = self.get(f"/metrics/{self.task}?metric={metric}{words}")
        found: dict[str, Any] = next(one for one in answer["series"] if one["rank"] == 0)
        return found

    def step(self) -> int:
        return int(self.series("loss")["steps"][-1])

    def pid_of(self, worker: str) -> int:
        with Channel(self.cluster.endpoints["grpc"]) as channel:
            workers = RecordsClient(channel).workers()
        return next(int(one.metadata["pid"]) for one in workers if one.worker_id == worker)

    def agree_on_step(self, shown: Locator, *, lag: int = 100) -> None:
        """The page's step lies between the server's before and after. A step takes about 90 ms: `lag` is seconds."""
        before = self.step()
        expect(shown).to_contain_text(re.compile(r"\d"))
        seen = number(shown.inner_text())
        assert before - lag <= seen <= self.step() + lag, f"the page says {seen}, the server {before} to {self.step()}"

    def agree(self, what: str, shown: Locator, told: Any) -> None:
        """Sooner or later both say the same at the same moment; `told` reads the server's words anew each time."""
        eventually(f"{what}: page and server agree", lambda: str(told()) in shown.inner_text())


def finished_run(
    site: Site, run_id: str, config: dict[str, object], *, tags: tuple[str, ...] = (), group: str = "", first: float = 1
) -> None:
    """A run that somebody logged elsewhere and that has said its goodbye; its loss falls from `first`."""
    batch = Batch(batch_id=f"browser-{run_id}")
    batch.series.add(index=0, run_id=run_id, metric="loss", device=65535)
    for step in range(20):
        batch.points.series.append(0)
        batch.points.step.append(step)
        batch.points.value.append(first / (1 + step))
    about = {"run_id": run_id, "name": run_id, "status": "finished", "tags": tags, "group": group}
    batch.runs.add(**about, config_json=json.dumps(config))
    with grpc.insecure_channel(site.cluster.endpoints["telemetry"]) as channel:
        TelemetryStub(channel).ReportOnce(batch, timeout=60)
    eventually(run_id, lambda: any(one["run_id"] == run_id for one in site.get("/runs")), within_s=10)
