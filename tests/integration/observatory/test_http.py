"""REST of a real server: shapes, refusals, doors."""

import io
import os
import socket
import subprocess
import sys
from pathlib import Path

import grpc
import httpx
import pyarrow.parquet
import pytest

from strata.protocol.generated.telemetry_pb2 import Batch
from strata.protocol.generated.telemetry_pb2_grpc import TelemetryStub
from tests.integration.observatory.conftest import _MAIN, ObservatoryProcess, wait_until
from tests.support.local_http import LOCAL


def send(process: ObservatoryProcess, batch: Batch) -> None:
    with grpc.insecure_channel(process.telemetry) as channel:
        TelemetryStub(channel).ReportOnce(batch, timeout=60, wait_for_ready=True)


def test_health_status_and_an_unreachable_coordinator(shared_observatory: ObservatoryProcess) -> None:
    assert shared_observatory.get("/api/health") == {"status": "ok"}
    assert shared_observatory.get("/health") == {"status": "ok"}
    status = shared_observatory.get("/api/status")
    assert status["connected"] is False
    assert status["uptime"] is None
    assert status["metric_store"] == "embedded"
    assert {"address", "version", "storage_backend", "generation", "started_at"} <= set(status)
    for name in ("workers", "tasks", "datasets", "checkpoints", "barriers", "alerts"):
        assert shared_observatory.get(f"/api/{name}") == []
    board = shared_observatory.get("/api/dashboard")
    assert set(board) >= {"coordinator", "workers", "datasets", "checkpoints", "barriers", "metrics", "tasks", "logs"}


def test_one_rank_is_read_alone_from_memory_and_from_the_store(shared_observatory: ObservatoryProcess) -> None:
    """`from_step` keeps the answer from being what is live."""
    logged = [(rank, metric, step) for rank in range(200) for metric in ("loss", "lr") for step in range(3)]
    points = [{"metric": name, "rank": rank, "step": step, "value": rank + step} for rank, name, step in logged]
    shared_observatory.post("/api/runs/ranked/points", {"points": points}).raise_for_status()
    for narrowed in ({}, {"from_step": 0}):
        both = shared_observatory.get("/metrics/ranked", rank=150, **narrowed)["series"]
        assert {(one["metric"], one["rank"]): one["values"] for one in both} == {
            ("loss", 150): [150, 151, 152],
            ("lr", 150): [150, 151, 152],
        }
        (one,) = shared_observatory.get("/metrics/ranked", rank=150, metric="lr", **narrowed)["series"]
        assert one["values"] == [150, 151, 152]
        assert shared_observatory.get("/metrics/ranked", rank=200, **narrowed)["series"] == []
    for odd in ("-1", str(2**32), str(2**70), "x"):
        assert httpx.get(f"{shared_observatory.http}/metrics/ranked?rank={odd}").status_code == 422


def test_every_list_and_page_answers_head_and_a_stream_ends(shared_observatory: ObservatoryProcess) -> None:
    http = shared_observatory.http
    shared_observatory.post("/api/runs/headed/points", {"points": [{"metric": "loss", "step": 1, "value": 1.0}]})
    paths = ["/", "/ui/runs", "/docs", "/openapi.json", "/health", "/metrics/headed", "/api/runs", "/api/logs"]
    for path in (*paths, "/api/runs/headed/export", "/api/tasks/none", "/api/nothing", "/stream?topics=gossip"):
        whole, head = LOCAL.get(f"{http}{path}"), LOCAL.head(f"{http}{path}")
        assert (head.status_code, head.content) == (whole.status_code, b""), path
        volatile = {"date", "etag", "last-modified", "content-length"}  # of lists that change meanwhile
        assert {k: v for k, v in head.headers.items() if k not in volatile} == {
            k: v for k, v in whole.headers.items() if k not in volatile
        }, path
    assert LOCAL.head(f"{http}/metrics").headers["content-type"].startswith("text/plain; version=0.0.4")
    assert LOCAL.head(f"{http}/", headers={"host": "evil.example"}).status_code == 403
    streamed = LOCAL.head(f"{http}/stream")
    assert (streamed.status_code, streamed.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
    wait_until(lambda: "strata_stream_clients 0.0" in LOCAL.get(f"{http}/metrics").text, "the stream's end")


def test_metrics_are_found_by_name_in_all_runs(shared_observatory: ObservatoryProcess) -> None:
    names = ["odd name/Zeta", "odd name/eta", *(f"many/{number:05d}" for number in range(300))]
    points = [{"metric": name, "step": 1, "value": 1.0} for name in names]
    shared_observatory.post("/api/runs/named/points", {"points": points}).raise_for_status()
    found = shared_observatory.get("/api/series/names", q="ETA odd")
    assert [(one["metric"], one["run"]["run_id"]) for one in found] == [
        ("odd name/eta", "named"),
        ("odd name/Zeta", "named"),
    ]
    assert [one["metric"] for one in shared_observatory.get("/api/series/names", q="many/0029", limit=2)] == [
        "many/00290",
        "many/00291",
    ]
    assert shared_observatory.get("/api/series/names", q="nobody/has/this") == []
    for odd in ("limit=0", f"limit={2**70}", "limit=nan", f"q={'x' * 201}"):
        assert LOCAL.get(f"{shared_observatory.http}/api/series/names?{odd}").status_code == 422, odd
    assert LOCAL.get(f"{shared_observatory.http}/api/series/names?q=%ED%A0%80").json() == []  # half of a character


def test_errors_have_one_form(shared_observatory: ObservatoryProcess) -> None:
    def error(response: httpx.Response, status: int) -> str:
        assert response.status_code == status, response.text
        assert set(response.json()["error"]) == {"code", "message", "hint", "field"}
        return str(response.json()["error"]["code"])

    http = shared_observatory.http
    assert error(LOCAL.get(f"{http}/api/nothing"), 404) == "not_found"
    assert error(LOCAL.get(f"{http}/metrics/no-such-run"), 404) == "not_found"
    assert error(LOCAL.get(f"{http}/api/tasks/none"), 404) == "unknown_task"
    assert error(LOCAL.get(f"{http}/api/datasets/none/shards"), 404) == "unknown_dataset"
    assert error(LOCAL.get(f"{http}/api/logs?limit=0"), 422) == "invalid_argument"
    assert error(LOCAL.get(f"{http}/api/logs?before=yesterday"), 400) == "invalid_argument"
    assert error(LOCAL.get(f"{http}/stream?topics=gossip"), 400) == "invalid_argument"
    assert error(shared_observatory.post("/api/tasks", {"type": "training"}), 422) == "invalid_argument"
    assert error(shared_observatory.post("/api/tasks", {"name": "t"}), 503) == "coordinator_unavailable"
    assert error(LOCAL.get(http, headers={"host": "evil.example"}), 403) == "permission_denied"
    plain = LOCAL.post(f"{http}/api/tasks", content=b"{}", headers={"content-type": "text/plain"})
    assert error(plain, 400) == "invalid_argument"
    foreign = {"origin": "http://evil.example"}
    assert error(LOCAL.post(f"{http}/api/tasks", json={}, headers=foreign), 403) == "permission_denied"


def test_every_answer_has_the_security_headers(shared_observatory: ObservatoryProcess) -> None:
    for path in ("/", "/api/health", "/api/nothing", "/workers"):
        headers = LOCAL.get(f"{shared_observatory.http}{path}").headers
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert "default-src 'self'" in headers["content-security-policy"]


def test_points_are_all_or_nothing(shared_observatory: ObservatoryProcess) -> None:
    good = {"metric": "loss", "step": 1, "value": 0.5}
    refused = shared_observatory.post("/api/runs/half/points", {"points": [good, {"metric": "bad\u0007", "value": 1}]})
    assert refused.status_code == 400
    assert all(run["run_id"] != "half" for run in shared_observatory.get("/runs"))
    accepted = shared_observatory.post("/api/runs/whole/points", {"points": [good, {**good, "step": 2, "value": None}]})
    assert accepted.json() == {"accepted": 2}

    def shown() -> list[dict[str, object]]:
        found: list[dict[str, object]] = shared_observatory.get("/metrics/whole")["series"]
        return found

    series = wait_until(shown, "the run's series")[0]
    assert series["values"] == [0.5, None]
    assert series["nan_count"] == 1
    assert shared_observatory.get("/api/metrics/whole") == shared_observatory.get("/metrics/whole")
    run = next(run for run in shared_observatory.get("/api/runs") if run["run_id"] == "whole")
    assert run["is_active"]
    assert run["latest_step"] == 2
    assert run["num_points"] == 2


def test_a_run_is_exported_as_it_was_sent(shared_observatory: ObservatoryProcess) -> None:
    points = [{"metric": "loss", "step": step, "value": step / 4, "event_time": 1_794_000_000} for step in range(5)]
    assert shared_observatory.post("/api/runs/exported/points", {"points": points}).status_code == 200
    wait_until(lambda: shared_observatory.get("/api/status")["spool_backlog_bytes"] == 0, "an empty spool")
    text = LOCAL.get(f"{shared_observatory.http}/api/runs/exported/export").text
    assert text.splitlines()[0].startswith('"run_id","metric"')
    assert len(text.splitlines()) == 6
    url = f"{shared_observatory.http}/api/runs/exported/export?format=parquet"
    table = pyarrow.parquet.read_table(io.BytesIO(LOCAL.get(url).content))
    assert table["value"].to_pylist() == [0.0, 0.25, 0.5, 0.75, 1.0]
    assert LOCAL.get(f"{shared_observatory.http}/api/runs/none/export").status_code == 404


def test_logs_are_found_by_filters_words_and_pages(shared_observatory: ObservatoryProcess) -> None:
    batch = Batch(batch_id="logs-1")
    for number in range(30):
        level = "error" if number % 10 == 0 else "info"
        text = f"step {number} of Große Straße" if number % 2 else f"STEP {number}"
        batch.logs.add(
            event_time_ms=1_794_000_000_000 + number, level=level, message=text, source="worker", task_id="task-logs",
            worker_id=f"w{number % 3}", sequence=number,
        )  # fmt: skip
    send(shared_observatory, batch)
    send(shared_observatory, batch)

    def find(**query: object) -> list[dict[str, object]]:
        found: list[dict[str, object]] = shared_observatory.get("/api/logs", task_id="task-logs", **query)
        return found

    assert len(find()) == 30
    wait_until(lambda: shared_observatory.get("/api/status")["spool_backlog_bytes"] == 0, "an empty spool")
    everything = find()
    assert len(everything) == 30
    assert [entry["id"] for entry in everything] == sorted((str(entry["id"]) for entry in everything), reverse=True)
    assert set(everything[0]) >= {"id", "timestamp", "level", "message", "source", "task_id", "worker_id"}
    assert len(find(level="error")) == 3
    assert len(find(q="straße")) == 15
    assert len(find(q="step 7")) == 1
    assert len(find(worker_id="w1")) == 10
    first = find(limit=12)
    second = find(limit=100, before=first[-1]["id"])
    assert [*first, *second] == everything
    assert find(after=everything[5]["id"]) == everything[:5]
    assert len(shared_observatory.get("/api/tasks/task-logs/logs", limit=7)) == 7
    assert shared_observatory.get("/api/tasks/none/logs") == []


def test_a_bad_loss_becomes_an_alert_that_survives(shared_observatory: ObservatoryProcess) -> None:
    points = [{"metric": "loss", "step": 3, "value": None, "rank": 2}]
    assert shared_observatory.post("/api/runs/nan-run/points", {"points": points}).status_code == 200
    alert = wait_until(
        lambda: [one for one in shared_observatory.get("/api/alerts") if one["run_id"] == "nan-run"], "an alert"
    )[0]
    assert (alert["kind"], alert["severity"], alert["step"], alert["rank"]) == ("bad_loss", "critical", 3, 2)


def test_prometheus_text(shared_observatory: ObservatoryProcess) -> None:
    text = LOCAL.get(f"{shared_observatory.http}/metrics").text
    assert "strata_ingest_points_total" in text
    assert "strata_coordinator_connected 0.0" in text


def test_a_stream_of_batches_is_acknowledged_in_order_and_refusals_do_not_end_it(
    shared_observatory: ObservatoryProcess,
) -> None:
    def batch(number: int, metric: str = "loss") -> Batch:
        message = Batch(batch_id=f"s-{number}")
        message.series.add(index=0, run_id="streamed", metric=metric, device=65535)
        message.points.series.append(0)
        message.points.step.append(number)
        message.points.event_time_ms.append(1_794_000_000_000)
        message.points.value.append(1.0)
        return message

    with grpc.insecure_channel(shared_observatory.telemetry) as channel:
        sent = [batch(0), batch(1, "\n"), batch(2), batch(0)]
        acks = list(TelemetryStub(channel).Report(iter(sent), timeout=60))
    assert [ack.batch_id for ack in acks] == ["s-0", "s-1", "s-2", "s-0"]
    assert [ack.error_code for ack in acks] == ["", "invalid_argument", "", ""]
    found = wait_until(lambda: shared_observatory.get("/metrics/streamed")["series"], "the series")
    assert found[0]["steps"] == [0, 2]


@pytest.mark.parametrize("flag", ["http", "telemetry"])
def test_a_taken_port_is_named_with_its_flag(tmp_path: Path, flag: str) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        program = _MAIN.replace(f'"{flag}_port": 0', f'"{flag}_port": {port}')
        command = [sys.executable, "-c", program, str(tmp_path), "3", "127.0.0.1:1"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, env={**os.environ})
    assert done.returncode != 0
    assert f"port {port} is taken" in done.stderr
