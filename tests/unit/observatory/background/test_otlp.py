"""OpenTelemetry's variables, and our metrics in its words: read back by its own definitions."""

import asyncio
import json
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from socketserver import StreamRequestHandler, ThreadingTCPServer

import pytest
from google.protobuf.json_format import Parse
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric

from strata.clock import SystemClock
from strata.errors import InvalidConfig
from strata.observatory.background.otlp import OtlpConfig, OtlpExporter, to_otlp
from tests.support.waiting import eventually


def _families() -> list[Metric]:
    cards = GaugeMetricFamily("strata_cards", "Cards", labels=["host"])
    cards.add_metric(['a"b\n'], 4)
    cards.add_metric(["nan"], float("nan"))
    silent = GaugeMetricFamily("strata_silent", "Nobody said", labels=["host"])
    buckets = [("0.1", 2.0), ("1.0", 5.0), ("+Inf", 6.0)]
    return [
        cards,
        silent,
        CounterMetricFamily("strata_points", "Points", value=2**60),
        HistogramMetricFamily("strata_latency_seconds", "Latency", buckets=buckets, sum_value=3.5),
        HistogramMetricFamily("strata_silence_seconds", "Nobody was timed"),
    ]


def test_gauges_counters_and_histograms_are_what_opentelemetry_reads() -> None:
    text = json.dumps(to_otlp(_families(), {"service.name": "lab"}, 10, 20))
    (told,) = Parse(text, ExportMetricsServiceRequest()).resource_metrics
    assert [(one.key, one.value.string_value) for one in told.resource.attributes] == [("service.name", "lab")]
    (scope,) = told.scope_metrics
    cards, points, latency = scope.metrics
    (card,) = cards.gauge.data_points
    assert (card.attributes[0].value.string_value, card.as_double, card.time_unix_nano) == ('a"b\n', 4.0, 20)
    assert (points.name, points.sum.is_monotonic, points.sum.aggregation_temporality) == ("strata_points", True, 2)
    assert [(one.as_double, one.start_time_unix_nano) for one in points.sum.data_points] == [(2.0**60, 10)]
    (spread,) = latency.histogram.data_points
    assert (spread.count, spread.sum) == (6, 3.5)
    assert (list(spread.bucket_counts), list(spread.explicit_bounds)) == ([2, 3, 1], [0.1, 1.0])


def test_its_own_variables_say_where_and_how() -> None:
    config = OtlpConfig.from_environment(
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "http://box:4318/",
            "OTEL_EXPORTER_OTLP_HEADERS": "api-key=a%3Db, x=1",
            "OTEL_SERVICE_NAME": "lab",
            "OTEL_RESOURCE_ATTRIBUTES": "site=north",
            "OTEL_METRIC_EXPORT_INTERVAL": "1500",
            "OTEL_EXPORTER_OTLP_TIMEOUT": "3000",
            "OTEL_EXPORTER_OTLP_METRICS_TIMEOUT": "2000",
        }
    )
    assert config is not None
    assert (config.url, config.interval_s, config.timeout_s) == ("http://box:4318/v1/metrics", 1.5, 2.0)
    assert config.headers == {"api-key": "a=b", "x": "1"}
    assert (config.resource["service.name"], config.resource["site"]) == ("lab", "north")
    assert "a=b" not in repr(config)


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box", "OTEL_SDK_DISABLED": "true"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box", "OTEL_METRICS_EXPORTER": "none"},
    ],
)
def test_without_a_collector_nothing_is_sent(given: dict[str, str]) -> None:
    assert OtlpConfig.from_environment(given) is None


def test_the_address_of_metrics_is_taken_as_it_is() -> None:
    config = OtlpConfig.from_environment({"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "https://box/x"})
    assert config is not None
    assert config.url == "https://box/x"


@pytest.mark.parametrize(
    "given",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "box:4317"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box", "OTEL_METRIC_EXPORT_INTERVAL": "0"},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box", "OTEL_METRIC_EXPORT_INTERVAL": "9" * 40},
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://box", "OTEL_EXPORTER_OTLP_TIMEOUT": "soon"},
    ],
)
def test_what_makes_no_sense_is_named(given: dict[str, str]) -> None:
    with pytest.raises(InvalidConfig, match="OTEL_"):
        OtlpConfig.from_environment(given)


def test_a_certificate_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.pem").write_text("no certificate")
    for name in ("ca.pem", "absent.pem"):
        config = OtlpConfig(url="https://box", ca_file=str(tmp_path / name))
        with pytest.raises(InvalidConfig, match="OTEL_EXPORTER_OTLP_CERTIFICATE"):
            OtlpExporter(config, list, SystemClock())


@contextmanager
def _peer(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """A server that says this to everybody, and what it was asked."""
    asked: list[bytes] = []

    class Handler(StreamRequestHandler):
        def handle(self) -> None:
            asked.append(self.rfile.readline())
            self.wfile.write(answer)

    with ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
        server.shutdown()


@pytest.mark.parametrize(
    ("answer", "headers"),
    [
        (b"what?\r\n\r\n", {}),
        (b"HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n", {}),
        (b"", {}),
        (b"", {"x": "two\nlines"}),
    ],
)
async def test_whatever_a_peer_says_the_next_round_comes(
    answer: bytes, headers: dict[str, str], caplog: pytest.LogCaptureFixture
) -> None:
    rounds: list[int] = []

    def collect() -> list[Metric]:
        rounds.append(1)
        return _families()

    with _peer(answer) as (url, asked), caplog.at_level(logging.WARNING):
        exporter = OtlpExporter(OtlpConfig(url=url, headers=headers, interval_s=0.01), collect, SystemClock())
        await exporter.start()
        await asyncio.to_thread(eventually, "three rounds", lambda: len(rounds) > 2)
        await exporter.stop()
    assert len([record for record in caplog.records if "has no metrics" in record.message]) == 1
    assert not [line for line in asked if line.startswith(b"GET")]
