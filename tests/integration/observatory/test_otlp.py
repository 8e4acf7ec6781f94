"""A real cluster and a collector that reads OTLP by OpenTelemetry's own definitions: what /metrics says arrives there,
and a collector that is away is in nobody's way."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import urlopen

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.parser import text_string_to_metric_families

from tests.support.cluster import Cluster
from tests.support.waiting import eventually

pytestmark = pytest.mark.slow


class _Collector(ThreadingHTTPServer):
    def __init__(self, port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.away = True
        self.refused = 0
        self.got: list[tuple[str, str | None, ExportMetricsServiceRequest]] = []


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        assert isinstance(self.server, _Collector)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if self.server.away:
            self.server.refused += 1
            self.send_error(503)
            return
        told = Parse(body, ExportMetricsServiceRequest())
        self.server.got.append((self.path, self.headers["Api-Key"], told))
        self.send_response(200)
        self.send_header("Content-Length", "2")
        self.end_headers()
        self.wfile.write(b"{}")

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def collector() -> Iterator[_Collector]:
    with _Collector() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def _names(told: ExportMetricsServiceRequest) -> set[str]:
    return {one.name for each in told.resource_metrics for scope in each.scope_metrics for one in scope.metrics}


def _newest(collector: _Collector, names: set[str]) -> tuple[str, str | None, ExportMetricsServiceRequest] | None:
    """The last round, once it has metrics of just these names."""
    got = collector.got[-1:]
    return got[0] if got and _names(got[0][2]) == names else None


def _scraped(up: Cluster) -> set[str]:
    with urlopen(f"{up.endpoints['http']}/metrics", timeout=60) as page:
        families = text_string_to_metric_families(page.read().decode())
    return {family.name for family in families if family.samples}


def test_what_metrics_says_arrives_at_the_collector(collector: _Collector, tmp_path: Path) -> None:
    environment = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{collector.server_port}",
        "OTEL_EXPORTER_OTLP_HEADERS": "api-key=secret",
        "OTEL_SERVICE_NAME": "lab",
        "OTEL_METRIC_EXPORT_INTERVAL": "300",
    }
    with Cluster(tmp_path / "data", environment=environment) as up:
        eventually("a refused round", lambda: collector.refused > 1)
        collector.away = False
        eventually("the agent", lambda: "strata_agent_slots" in _scraped(up))
        path, key, told = eventually("all of /metrics", lambda: _newest(collector, _scraped(up)))
    assert (path, key) == ("/v1/metrics", "secret")
    resource = {one.key: one.value.string_value for one in told.resource_metrics[0].resource.attributes}
    assert resource["service.name"] == "lab"
    metrics = {one.name: one for one in told.resource_metrics[0].scope_metrics[0].metrics}
    (slots,) = metrics["strata_agent_slots"].gauge.data_points
    assert slots.as_double >= 1
    assert {one.key for one in slots.attributes} == {"agent", "host"}
    assert metrics["strata_ingest_batches"].sum.is_monotonic
