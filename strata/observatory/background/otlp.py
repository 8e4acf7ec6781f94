"""Sends what /metrics says to an OpenTelemetry collector, when OpenTelemetry's own variables name one: OTLP over HTTP,
as JSON, which needs no library. Never in anybody's way: a collector that is away misses a round.
"""

import asyncio
import logging
import math
import ssl
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote, urlsplit

from prometheus_client.core import Metric

from strata import __version__
from strata.clock import Clock
from strata.errors import InvalidConfig
from strata.observatory.background.part import Part
from strata.observatory.records.encoding import encode

__all__ = ["OtlpConfig", "OtlpExporter", "to_otlp"]

_log = logging.getLogger(__name__)

_CUMULATIVE = 2  # AGGREGATION_TEMPORALITY_CUMULATIVE
_BASE = "OTEL_EXPORTER_OTLP"


@dataclass(frozen=True, slots=True, kw_only=True)
class OtlpConfig:
    """Where the collector listens, and what it is told of us."""

    url: str
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    resource: Mapping[str, str] = field(default_factory=dict)
    interval_s: float = 60.0
    timeout_s: float = 10.0
    ca_file: str | None = None

    def __post_init__(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https"):
            raise InvalidConfig(f"{_BASE}_ENDPOINT is {self.url!r}; it must begin with http:// or https://")

    @classmethod
    def from_environment(cls, given: Mapping[str, str]) -> "OtlpConfig | None":
        """By the variables of OpenTelemetry's specification; None when they name no collector, or say not to send."""

        def read(name: str) -> str:
            return given.get(f"{_BASE}_METRICS_{name}") or given.get(f"{_BASE}_{name}") or ""

        base, exact = given.get(f"{_BASE}_ENDPOINT"), given.get(f"{_BASE}_METRICS_ENDPOINT")
        off = given.get("OTEL_SDK_DISABLED", "").lower() == "true" or given.get("OTEL_METRICS_EXPORTER") == "none"
        if off or not (base or exact):
            return None
        if "grpc" in read("PROTOCOL"):
            _log.warning("%s_PROTOCOL asks for gRPC; metrics are sent over HTTP, most often to port 4318", _BASE)
        own = {"service.name": given.get("OTEL_SERVICE_NAME") or "strata", "service.version": __version__}
        return cls(
            url=exact or f"{(base or '').rstrip('/')}/v1/metrics",
            headers=_pairs(read("HEADERS")),
            resource={**own, **_pairs(given.get("OTEL_RESOURCE_ATTRIBUTES", ""))},
            interval_s=_seconds(given, "OTEL_METRIC_EXPORT_INTERVAL", 60.0),
            timeout_s=_seconds(given, f"{_BASE}_METRICS_TIMEOUT", _seconds(given, f"{_BASE}_TIMEOUT", 10.0)),
            ca_file=read("CERTIFICATE") or None,
        )


def _pairs(text: str) -> dict[str, str]:
    """`a=1,b=2`, percent-encoded."""
    pieces = (piece.partition("=") for piece in text.split(",") if "=" in piece)
    return {unquote(name.strip()): unquote(value.strip()) for name, _, value in pieces}


def _seconds(given: Mapping[str, str], name: str, default: float) -> float:
    text = given.get(name, "")
    if not text:
        return default
    if not text.isdecimal() or not 100 <= int(text[:12]) <= 86_400_000:
        raise InvalidConfig(f"{name} is {text!r}; it must be milliseconds, from 100 to 86400000")
    return int(text) / 1e3


def to_otlp(
    families: Iterable[Metric], resource: Mapping[str, str], started_ns: int, now_ns: int
) -> dict[str, list[dict[str, Any]]]:
    """An ExportMetricsServiceRequest as JSON. Counters and histograms count since `started_ns`. What is no number is
    left out."""
    times = {"startTimeUnixNano": str(started_ns), "timeUnixNano": str(now_ns)}
    told = [_metric(family, times) for family in families]
    scope = {"scope": {"name": "strata", "version": __version__}, "metrics": [one for one in told if one is not None]}
    return {"resourceMetrics": [{"resource": {"attributes": _attributes(resource)}, "scopeMetrics": [scope]}]}


def _metric(family: Metric, times: Mapping[str, str]) -> dict[str, Any] | None:
    about = {"name": family.name, "description": family.documentation}
    if family.type == "histogram":
        if not family.samples:
            return None
        return {**about, "histogram": {"aggregationTemporality": _CUMULATIVE, "dataPoints": [_buckets(family, times)]}}
    points = [
        {"attributes": _attributes(sample.labels), **times, "asDouble": sample.value}
        for sample in family.samples
        if math.isfinite(sample.value)
    ]
    if not points:
        return None
    if family.type == "counter":
        return {**about, "sum": {"aggregationTemporality": _CUMULATIVE, "isMonotonic": True, "dataPoints": points}}
    return {**about, "gauge": {"dataPoints": points}}


def _buckets(family: Metric, times: Mapping[str, str]) -> dict[str, Any]:
    """A histogram without labels. Prometheus counts up to each bound, OTLP between two of them."""
    upto = [(sample.labels["le"], sample.value) for sample in family.samples if sample.name.endswith("_bucket")]
    total = next((sample.value for sample in family.samples if sample.name.endswith("_sum")), None)
    counts = [value for _, value in upto]
    between = [count - before for count, before in zip(counts, [0.0, *counts], strict=False)]
    return {
        **times,
        "count": str(int(counts[-1])),
        "sum": total,
        "bucketCounts": [str(int(count)) for count in between],
        "explicitBounds": [float(bound) for bound, _ in upto if bound != "+Inf"],
    }


def _attributes(labels: Mapping[str, str]) -> list[dict[str, Any]]:
    return [{"key": name, "value": {"stringValue": value}} for name, value in labels.items()]


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A POST that is sent elsewhere becomes a GET, which a page for signing in answers with success."""

    def redirect_request(self, *_: object) -> None:
        return None


def _tls(config: OtlpConfig) -> ssl.SSLContext | None:
    try:
        return ssl.create_default_context(cafile=config.ca_file) if config.ca_file else None
    except OSError as error:  # also what is no certificate
        raise InvalidConfig(f"{_BASE}_CERTIFICATE is {config.ca_file!r}, which cannot be used: {error}") from None


class OtlpExporter(Part):
    """Posts all of `collect` every interval."""

    def __init__(self, config: OtlpConfig, collect: Callable[[], Iterable[Metric]], clock: Clock) -> None:
        self._config = config
        self._collect = collect
        self._clock = clock
        self._started_ns = round(clock.wall() * 1e9)
        self._opener = urllib.request.build_opener(_NoRedirect, urllib.request.HTTPSHandler(context=_tls(config)))
        self._url = config.url.rpartition("@")[2]  # for the log: a name and a password may stand before it
        self._missed = 0

    async def _run(self) -> None:
        _log.info("metrics are sent to %s every %g s", self._url, self._config.interval_s)
        while True:
            await asyncio.sleep(self._config.interval_s)
            try:
                await self._send()
            except Exception as error:  # whatever a peer answers, or a metric holds: the next round is another one
                if not self._missed:
                    kind = "" if isinstance(error, OSError) else f"{type(error).__name__}: "
                    _log.warning("the OpenTelemetry collector at %s has no metrics: %s%s", self._url, kind, error)
                self._missed += 1
            else:
                if self._missed:
                    _log.info("the OpenTelemetry collector takes metrics again; it missed %d rounds", self._missed)
                self._missed = 0

    async def _send(self) -> None:
        now_ns = round(self._clock.wall() * 1e9)
        body = encode(to_otlp(self._collect(), self._config.resource, self._started_ns, now_ns))
        await asyncio.to_thread(self._post, body)

    def _post(self, body: bytes) -> None:
        request = urllib.request.Request(  # noqa: S310  # the scheme was checked at the start
            self._config.url, data=body, headers={**self._config.headers, "Content-Type": "application/json"}
        )
        with self._opener.open(request, timeout=self._config.timeout_s):
            pass
