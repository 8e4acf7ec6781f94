"""All settings of a Strata process as one frozen record: each with its default, what is allowed, and its meaning, which
becomes docs/reference/environment.md. Every training script loads this file, so nothing heavy is imported here.
"""
# ruff: noqa: RUF009 - _setting, _port and _seconds make fields of a dataclass, as `field` does

import re
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, Literal

from strata.errors import InvalidArgument
from strata.types.tasks import PORTS, read_hang_timeout

__all__ = ["SETTINGS", "Secret", "Settings", "default_of"]

_ADDRESS = re.compile(r"(?:https?://)?(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})\Z")

_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:]+\]|[a-z0-9._-]+)(?::\d{1,5})?\Z")


@dataclass(frozen=True, slots=True, repr=False)
class Secret:
    """Text that is never printed."""

    _text: str

    def get_secret_value(self) -> str:
        return self._text

    def __str__(self) -> str:
        return "**********" if self._text else ""

    def __repr__(self) -> str:
        return f"Secret('{self}')"


def _check_addresses(value: str) -> str:
    addresses = [part.strip() for part in value.split(",")]
    for address in addresses:
        match = _ADDRESS.match(address)
        if match is None or int(match[1]) > 65535:
            raise ValueError("expected host:port, such as localhost:50051, or several with commas between them")
    return ",".join(address.removeprefix("http://") for address in addresses)


def _check_journal(value: str) -> str:
    if not value.startswith(("postgresql://", "postgres://")):
        raise ValueError("expected postgresql://user@host/database; leave it out for the data folder")
    return value


def _split_origins(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _ORIGIN.match(value):
            raise ValueError(f"{value!r} is not an origin; write scheme, host and port, such as https://host:8443")
    return values


def _check_ports(value: str) -> str:
    first, _, last = value.partition("-")
    if not (first.isdecimal() and last.isdecimal() and 1024 <= int(first) < int(last) <= 65535):
        raise ValueError("expected first-last between 1024 and 65535, such as 20000-20999")
    return value


def _read_hang_timeout(value: object) -> float | None:
    try:
        return None if value is None else read_hang_timeout(str(value))
    except InvalidArgument as error:
        raise ValueError(error.message) from None


def _setting(*, default: object, description: str, **allowed: Any) -> Any:
    """`allowed` are constraints by pydantic's names, and functions of ours: `read` makes a value of what was written,
    `check` raises ValueError or returns the value."""
    return field(default=default, metadata={"description": description, **allowed})


def _port(*, default: int | None, description: str) -> Any:
    return _setting(default=default, description=description, ge=0, le=65535)


def _seconds(*, default: float, description: str) -> Any:
    return _setting(default=default, description=description, gt=0, allow_inf_nan=False)


@dataclass(frozen=True, kw_only=True)
class Settings:
    """`load_settings` makes one that is checked. `given` are the fields that somebody has set; of a record that was
    made in code, those that differ from their defaults."""

    coordinator_addr: str = _setting(
        default="localhost:50051",
        check=_check_addresses,
        description="where workers, agents and the observatory find the coordinator; with STRATA_JOURNAL all of them, "
        "as a:50051,b:50051",
    )
    heartbeat_timeout: float = _seconds(default=30.0, description="a worker silent for so many seconds is lost")
    storage_backend: Literal["local", "s3"] = _setting(
        default="local", description="where tasks keep their checkpoints"
    )
    checkpoint_bucket: str = _setting(
        default="",
        description="the bucket, with STORAGE_BACKEND=s3 (a name, or s3://, gs:// or az:// and a name); with local, a "
        "folder instead of the data folder's",
    )
    aws_region: str | None = _setting(default=None, description="the bucket's region; unset: AWS's own chain finds it")
    aws_access_key_id: str | None = _setting(default=None, description="a key for the bucket; unset: as the region")
    aws_secret_access_key: Secret | None = _setting(default=None, description="the secret of that key")
    aws_endpoint_url: str | None = _setting(default=None, description="a server that speaks S3 and is not AWS")

    ch_host: str | None = _setting(
        default=None,
        description="a ClickHouse server, or several replicas as a,b:8124; unset: the engine that is built in",
    )
    ch_port: int = _port(default=8123, description="its HTTP port")
    ch_protocol: Literal["http", "https"] = _setting(default="http", description="how to speak to it")
    ch_database: str = _setting(default="training_observability", pattern=r"^[A-Za-z_]\w*$", description="its database")
    ch_user: str = _setting(default="default", description="its user")
    ch_password: Secret = _setting(default=Secret(""), description="the user's password")
    ch_cluster: str | None = _setting(
        default=None, pattern=r"^[\w.-]+$", description="its cluster: tables are made on all of it, and replicated"
    )
    ch_ca_file: Path | None = _setting(default=None, description="the CA of its certificate (PEM)")
    ch_cert: Path | None = _setting(default=None, description="a client certificate to show to it (PEM)")
    ch_key: Path | None = _setting(default=None, description="the key of that certificate (PEM)")
    poll_interval_sec: float = _seconds(
        default=3.0, description="how often rows that others wrote into ClickHouse are looked for, in seconds"
    )
    retention_days: int | None = _setting(
        default=None, ge=1, description="metrics, logs and media go after so many days"
    )
    media_run_bytes: int = _setting(
        default=4 << 30, ge=0, description="how many bytes of pictures, tables and other files of one run are kept"
    )

    data_dir: Path = _setting(
        default=Path(".strata"), description="state, logs and embedded metrics; for its owner alone"
    )
    journal: Secret | None = _setting(
        default=None,
        check=_check_journal,
        description="postgresql://user@host/database: where coordinators that stand in for each other keep what they "
        "know; unset: in the data folder",
    )
    host: str = _setting(default="127.0.0.1", description="the address to listen on")
    grpc_port: int = _port(default=50051, description="the coordinator's port; 0: any free one")
    coordinator_http_port: int | None = _port(
        default=None, description="where the coordinator itself answers /health and /metrics; unset: nowhere"
    )
    http_port: int = _port(default=3000, description="the port of dashboard and REST API; 0: any free one")
    telemetry_port: int = _port(default=50052, description="the observatory's gRPC port for metrics; 0: any free one")
    slots: int | None = _setting(
        default=None, ge=1, le=4096, description="workers an agent may run; unset: the host's cores, at least 4"
    )
    rank_ports: str = _setting(
        default=f"{PORTS[0]}-{PORTS[1] - 1}",
        check=_check_ports,
        description="where the ranks of a task meet on rank 0's host (MASTER_PORT); open these between hosts",
    )
    hang_timeout: float | None = _setting(
        default=None,
        read=_read_hang_timeout,
        description="a rank that makes no step for so many seconds is ended and its task goes on; off: never; unset: "
        "learned from its steps, at least 600. `strata run --hang-timeout` and a task's own value go before",
    )
    straggler_factor: float = _setting(
        default=1.5, ge=1.1, le=1000, description="a rank is a straggler beyond so many times the median of its task"
    )
    straggler_after: float = _seconds(
        default=300.0, description="for so many seconds a rank must be one before it is named, or its host left"
    )
    notice_file: Path | None = _setting(
        default=None, description="an agent's host goes away when this file appears; it may hold the deadline"
    )
    notice_url: str | None = _setting(
        default=None,
        pattern=r"^https?://[^\s/]",
        description="an agent's host goes away when this URL answers 200 with JSON or a time, as clouds tell it",
    )
    task_types: dict[str, list[str]] = field(
        default_factory=dict,
        metadata={"description": "task type → entrypoint; as JSON in a variable, as a table in strata.toml"},
    )
    scrub_mb_s: float = _setting(
        default=32.0,
        ge=0,
        allow_inf_nan=False,
        description="how fast a rank reads its task's newest checkpoint back to check it, in MB/s; 0: never",
    )
    observatory_priority: Literal["normal", "background"] = _setting(
        default="normal", description="background: dashboard and store use only time that nobody else wants (ADR 8)"
    )
    token: Secret | None = _setting(
        default=None, description="the cluster's token; unset: that in the data folder, made at the first start"
    )
    join: Secret | None = _setting(
        default=None, description="`<token>@host:port` of a cluster to join: whom to believe, what to show, and where"
    )
    advertise: str | None = _setting(
        default=None,
        pattern=r"^(?:\[?[0-9a-fA-F:.]+\]?|[A-Za-z0-9._-]+)$",
        description="the name or address by which other hosts reach this one, where it is not the one it listens on or "
        "the interface that leads to the coordinator",
    )
    cert: Path | None = _setting(
        default=None, description="a server's certificate (PEM, its CA's last); unset: one of the cluster's own CA"
    )
    key: Path | None = _setting(default=None, description="the key of that certificate (PEM)")
    ca_file: Path | None = _setting(
        default=None,
        description="the CA of the cluster (PEM); unset: the data folder's, then the system's",
    )
    insecure: bool = _setting(
        default=False, description="speak to other hosts without TLS, for a network that brings its own"
    )
    allowed_origins: tuple[str, ...] = _setting(
        default=(),
        read=_split_origins,
        check=_check_origins,
        description="web origins whose pages may call the API: https://host:port, exact, comma separated",
    )
    webhook_url: str | None = _setting(default=None, description="where alerts are posted")
    log: str = _setting(default="info", description="levels, also per part: coordinator=debug,storage=debug,info")
    log_format: Literal["auto", "human", "json"] = _setting(
        default="auto", description="auto: human on a terminal, JSON elsewhere"
    )
    quiet: bool = _setting(default=False, description="strata.init prints no line about its run")

    given: frozenset[str] = field(default=frozenset(), repr=False, compare=False)

    def __post_init__(self) -> None:
        if not self.given:
            differs = (name for name, one in SETTINGS.items() if getattr(self, name) != default_of(one))
            object.__setattr__(self, "given", frozenset(differs))

    @property
    def rank_port_range(self) -> range:
        first, last = self.rank_ports.split("-")
        return range(int(first), int(last) + 1)

    def but(self, **changes: Any) -> "Settings":
        """The same with some changed, which count as given."""
        return replace(self, **changes, given=self.given | changes.keys())


def default_of(setting: Field[Any]) -> Any:
    return setting.default if setting.default_factory is MISSING else setting.default_factory()


SETTINGS: Mapping[str, Field[Any]] = {one.name: one for one in fields(Settings) if one.name != "given"}
"""Every field that can be set, in the order of the page."""
