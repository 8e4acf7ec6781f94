"""Settings, read once at the edge: flags over environment over `.env` over strata.toml over defaults.

Every variable X is also accepted as STRATA_X. Unknown keys and bad values are refused by name, with what is allowed.
"""

import difflib
import json
import os
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, AliasGenerator, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from strata.errors import InvalidArgument, InvalidConfig
from strata.types.tasks import PORTS, read_hang_timeout

__all__ = [
    "RANK_VARIABLES",
    "Settings",
    "check_storage",
    "dotenv_variables",
    "environment",
    "load_settings",
    "masked",
    "variables",
]

_DOTENV, _TOML = Path(".env"), Path("strata.toml")

# Set by agents for the ranks they start, and read by the SDK, not here.
RANK_VARIABLES: Mapping[str, str] = {
    "STRATA_TASK_ID": "the task",
    "STRATA_ATTEMPT": "which attempt of the task this is, from 1",
    "STRATA_RUN_ID": "the run that takes the metrics; the task's id",
    "STRATA_WORKER_ID": "the worker's name in the cluster",
    "STRATA_INCARNATION": "the id of this process start; the coordinator refuses any other",
    "STRATA_RANK": "the rank; also in `RANK`",
    "STRATA_WORLD_SIZE": "how many ranks the task has now; also in `WORLD_SIZE`",
    "STRATA_WORKER_COUNT": "how many ranks the task has at most; the global batch is `batch_size` times that",
    "STRATA_LOCAL_RANK": "the number of the rank on its host; also in `LOCAL_RANK`",
    "STRATA_GPUS": "the cards that this rank alone holds, by `--gpus-per-worker`, as `CUDA_VISIBLE_DEVICES` names them",
    "STRATA_CONFIG_JSON": "the task's `config`",
    "STRATA_FORK_JSON": "where a forked task begins (docs/forking.md)",
    "STRATA_DATASET_ID": "the task's dataset, if it has one",
    "STRATA_DATASET_JSON": "where that dataset lies, its format, order and seed",
    "STRATA_GANG_PORT": "the port on which the ranks of the built-in trainer meet; frameworks use `MASTER_PORT`",
    "STRATA_WORLD_NUMBER": "how many ranks had been replaced in place in this attempt when the process was started",
    "STRATA_RANK_SECRET": "proves to coordinator and observatory that the process belongs to its task",
    "STRATA_CHECKPOINTS_APART": "the hosts of the task, where they do not share the folder that checkpoints go to",
    "STRATA_SPARES": "how many warm interpreters each host keeps for the task, if any",
    "STRATA_AGENT_ID": "the agent that started the rank",
    "STRATA_AGENT_SOCKET": "the socket at which that agent takes what the rank says to the coordinator",
    "STRATA_CA": "of an agent that a launcher started: the cluster's CA (PEM) itself",
    "STRATA_AGENT_NUMBER": "of an agent: its number among those that its launcher started, from 0",
    "STRATA_TELEMETRY_ADDR": "host:port of the observatory that takes the metrics; a script may set it, too",
    "STRATA_SUPERVISOR_PID": "of a child of `strata up`: the process whose end is its own",
    "STRATA_FAULT": "of a test: the named place in a checkpoint's save at which the process dies, fails or hangs",
}
# Read by tests, benchmarks and the build of this repository.
_TOOL_VARIABLES = frozenset(
    {
        "STRATA_BENCH_PICTURES",
        "STRATA_BENCH_REPORT",
        "STRATA_BENCH_SOAK_S",
        "STRATA_BENCH_VENVS",
        "STRATA_CHROMIUM",
        "STRATA_HTTP",
        "STRATA_REQUIRE_WEB",
    }
)
# Settings that are also read without the prefix, as other tools name them.
_PLAIN = {
    "coordinator_addr", "heartbeat_timeout", "poll_interval_sec", "storage_backend", "checkpoint_bucket",
    "aws_region", "aws_access_key_id", "aws_secret_access_key", "aws_endpoint_url",
    "ch_host", "ch_port", "ch_protocol", "ch_database", "ch_user", "ch_password",
    "ch_cluster", "ch_ca_file", "ch_cert", "ch_key",
}  # fmt: skip

_ADDRESS = re.compile(r"(?:https?://)?(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})\Z")

_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:]+\]|[a-z0-9._-]+)(?::\d{1,5})?\Z")


def _check_addresses(value: str) -> str:
    addresses = [part.strip() for part in value.split(",")]
    for address in addresses:
        match = _ADDRESS.match(address)
        if match is None or int(match[1]) > 65535:
            raise ValueError("expected host:port, such as localhost:50051, or several with commas between them")
    return ",".join(address.removeprefix("http://") for address in addresses)


def _check_journal(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().startswith(("postgresql://", "postgres://")):
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


Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_origins), AfterValidator(_check_origins)]
Addresses = Annotated[str, AfterValidator(_check_addresses)]
Journal = Annotated[SecretStr, AfterValidator(_check_journal)]
RankPorts = Annotated[str, AfterValidator(_check_ports)]
Port = Annotated[int, Field(ge=0, le=65535)]
HangTimeout = Annotated[float | None, BeforeValidator(_read_hang_timeout)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _names(field: str) -> AliasChoices:
    """The variables of a setting, the one that wins first."""
    also = ("RUST_LOG",) if field == "log" else (field.upper(),) if field in _PLAIN else ()
    return AliasChoices(f"STRATA_{field.upper()}", *also)


class Settings(BaseSettings):
    """All settings of a Strata process. The descriptions become docs/reference/environment.md."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        toml_file=_TOML,
        env_file=_DOTENV,
        dotenv_filtering="only_existing",  # the file is the whole project's, not ours alone
        alias_generator=AliasGenerator(validation_alias=_names),
    )

    coordinator_addr: Addresses = Field(
        default="localhost:50051",
        description="where workers, agents and the observatory find the coordinator; with STRATA_JOURNAL all of them, "
        "as a:50051,b:50051",
    )
    heartbeat_timeout: Seconds = Field(default=30.0, description="a worker silent for so many seconds is lost")
    storage_backend: Literal["local", "s3"] = Field(default="local", description="where tasks keep their checkpoints")
    checkpoint_bucket: str = Field(
        default="",
        description="the bucket, with STORAGE_BACKEND=s3 (a name, or s3://, gs:// or az:// and a name); with local, a "
        "folder instead of the data folder's",
    )
    aws_region: str | None = Field(default=None, description="the bucket's region; unset: AWS's own chain finds it")
    aws_access_key_id: str | None = Field(default=None, description="a key for the bucket; unset: as the region")
    aws_secret_access_key: SecretStr | None = Field(default=None, description="the secret of that key")
    aws_endpoint_url: str | None = Field(default=None, description="a server that speaks S3 and is not AWS")

    ch_host: str | None = Field(
        default=None,
        description="a ClickHouse server, or several replicas as a,b:8124; unset: the engine that is built in",
    )
    ch_port: Port = Field(default=8123, description="its HTTP port")
    ch_protocol: Literal["http", "https"] = Field(default="http", description="how to speak to it")
    ch_database: str = Field(default="training_observability", pattern=r"^[A-Za-z_]\w*$", description="its database")
    ch_user: str = Field(default="default", description="its user")
    ch_password: SecretStr = Field(default=SecretStr(""), description="the user's password")
    ch_cluster: str | None = Field(
        default=None, pattern=r"^[\w.-]+$", description="its cluster: tables are made on all of it, and replicated"
    )
    ch_ca_file: Path | None = Field(default=None, description="the CA of its certificate (PEM)")
    ch_cert: Path | None = Field(default=None, description="a client certificate to show to it (PEM)")
    ch_key: Path | None = Field(default=None, description="the key of that certificate (PEM)")
    poll_interval_sec: Seconds = Field(
        default=3.0, description="how often rows that others wrote into ClickHouse are looked for, in seconds"
    )
    retention_days: int | None = Field(default=None, ge=1, description="metrics, logs and media go after so many days")
    media_run_bytes: int = Field(
        default=4 << 30, ge=0, description="how many bytes of pictures, tables and other files of one run are kept"
    )

    data_dir: Path = Field(default=Path(".strata"), description="state, logs and embedded metrics; for its owner alone")
    journal: Journal | None = Field(
        default=None,
        description="postgresql://user@host/database: where coordinators that stand in for each other keep what they "
        "know; unset: in the data folder",
    )
    host: str = Field(default="127.0.0.1", description="the address to listen on")
    grpc_port: Port = Field(default=50051, description="the coordinator's port; 0: any free one")
    coordinator_http_port: Port | None = Field(
        default=None, description="where the coordinator itself answers /health and /metrics; unset: nowhere"
    )
    http_port: Port = Field(default=3000, description="the port of dashboard and REST API; 0: any free one")
    telemetry_port: Port = Field(default=50052, description="the observatory's gRPC port for metrics; 0: any free one")
    slots: int | None = Field(
        default=None, ge=1, le=4096, description="workers an agent may run; unset: the host's cores, at least 4"
    )
    rank_ports: RankPorts = Field(
        default=f"{PORTS[0]}-{PORTS[1] - 1}",
        description="where the ranks of a task meet on rank 0's host (MASTER_PORT); open these between hosts",
    )
    hang_timeout: HangTimeout = Field(
        default=None,
        description="a rank that makes no step for so many seconds is ended and its task goes on; off: never; unset: "
        "learned from its steps, at least 600. `strata run --hang-timeout` and a task's own value go before",
    )
    straggler_factor: float = Field(
        default=1.5, ge=1.1, le=1000, description="a rank is a straggler beyond so many times the median of its task"
    )
    straggler_after: Seconds = Field(
        default=300.0, description="for so many seconds a rank must be one before it is named, or its host left"
    )
    notice_file: Path | None = Field(
        default=None, description="an agent's host goes away when this file appears; it may hold the deadline"
    )
    notice_url: str | None = Field(
        default=None,
        pattern=r"^https?://[^\s/]",
        description="an agent's host goes away when this URL answers 200 with JSON or a time, as clouds tell it",
    )
    task_types: dict[str, list[str]] = Field(
        default_factory=dict, description="task type → entrypoint; as JSON in a variable, as a table in strata.toml"
    )
    scrub_mb_s: float = Field(
        default=32.0,
        ge=0,
        allow_inf_nan=False,
        description="how fast a rank reads its task's newest checkpoint back to check it, in MB/s; 0: never",
    )
    observatory_priority: Literal["normal", "background"] = Field(
        default="normal", description="background: dashboard and store use only time that nobody else wants (ADR 8)"
    )
    token: SecretStr | None = Field(
        default=None, description="the cluster's token; unset: that in the data folder, made at the first start"
    )
    join: SecretStr | None = Field(
        default=None, description="`<token>@host:port` of a cluster to join: whom to believe, what to show, and where"
    )
    advertise: str | None = Field(
        default=None,
        pattern=r"^(?:\[?[0-9a-fA-F:.]+\]?|[A-Za-z0-9._-]+)$",
        description="the name or address by which other hosts reach this one, where it is not the one it listens on or "
        "the interface that leads to the coordinator",
    )
    cert: Path | None = Field(
        default=None, description="a server's certificate (PEM, its CA's last); unset: one of the cluster's own CA"
    )
    key: Path | None = Field(default=None, description="the key of that certificate (PEM)")
    ca_file: Path | None = Field(
        default=None,
        description="the CA of the cluster (PEM); unset: the data folder's, then the system's",
    )
    insecure: bool = Field(
        default=False, description="speak to other hosts without TLS, for a network that brings its own"
    )
    allowed_origins: Origins = Field(
        default=(), description="web origins whose pages may call the API: https://host:port, exact, comma separated"
    )
    webhook_url: str | None = Field(default=None, description="where alerts are posted")
    log: str = Field(default="info", description="levels, also per part: coordinator=debug,storage=debug,info")
    log_format: Literal["auto", "human", "json"] = Field(
        default="auto", description="auto: human on a terminal, JSON elsewhere"
    )
    quiet: bool = Field(default=False, description="strata.init prints no line about its run")

    @property
    def rank_port_range(self) -> range:
        first, last = self.rank_ports.split("-")
        return range(int(first), int(last) + 1)

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return init_settings, env_settings, dotenv_settings, TomlConfigSettingsSource(settings_cls)


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """Settings from all sources; `flags` are those the user gave on the command line (None = not given)."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    _refuse_unknown_variables(environment())
    try:
        return Settings(**given)
    except ValidationError as error:
        raise InvalidConfig(_explain(error), hint="See `strata config show` and docs/configuration.md.") from None


def environment() -> Mapping[str, str]:
    """The process's variables; below them those of `.env` in the working folder, then strata.toml's, as if set."""
    merged = dict(os.environ)
    for layer in (dotenv_variables(), _toml_variables()):
        spellings = [variables(field) for field in Settings.model_fields]
        taken = {name for names in spellings if any(one in merged for one in names) for name in names}
        merged |= {name: value for name, value in layer.items() if name not in taken and name not in merged}
    return merged


def _toml_variables() -> dict[str, str]:
    """What strata.toml sets, as the variables that say the same. load_settings refuses unknown keys."""
    try:
        given = tomllib.loads(_TOML.read_text("utf-8")) if _TOML.is_file() else {}
    except (OSError, ValueError) as error:  # ValueError covers TOMLDecodeError
        raise InvalidConfig(f"strata.toml cannot be read: {error}") from None
    return {
        variables(field)[0]: value if isinstance(value, str) else json.dumps(value)
        for field, value in given.items()
        if field in Settings.model_fields
    }


def dotenv_variables() -> dict[str, str]:
    """What `.env` in the working folder sets. A folder of that name (a virtualenv) is ignored."""
    from dotenv import dotenv_values  # here: most processes have no such file

    if not _DOTENV.is_file():
        return {}
    try:
        return {name: value for name, value in dotenv_values(_DOTENV).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f".env cannot be read: {error}") from None


def check_storage(settings: Settings) -> None:
    """Refuses s3 without a bucket before anything starts; a task would find out only when it saves."""
    if settings.storage_backend == "s3" and not settings.checkpoint_bucket:
        raise InvalidConfig(
            "STORAGE_BACKEND is s3 but CHECKPOINT_BUCKET is not set",
            hint="Set CHECKPOINT_BUCKET to the name of the bucket, or STORAGE_BACKEND=local.",
        )


def masked(settings: Settings) -> dict[str, str]:
    """Every setting as text, secrets masked: what `strata config show` prints."""
    return {name: str(getattr(settings, name)) for name in type(settings).model_fields}


def variables(field: str) -> list[str]:
    """The environment variables a field is read from, the one that wins first."""
    alias = Settings.model_fields[field].validation_alias
    assert isinstance(alias, AliasChoices), field
    return [str(choice) for choice in alias.choices]


def _refuse_unknown_variables(given: Mapping[str, str]) -> None:
    known = {name for field in Settings.model_fields for name in variables(field)}
    known |= RANK_VARIABLES.keys() | _TOOL_VARIABLES
    for name in sorted(given):
        if name.startswith("STRATA_") and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else "Unset it; docs/reference/environment.md lists all."
            raise InvalidConfig(f"{name} is not a setting of Strata", hint=hint)


def _explain(error: ValidationError) -> str:
    """One line for the first complaint: the key as the user wrote it, the value, and what is allowed."""
    first = error.errors()[0]
    key = _as_written(str(first["loc"][0]))
    if first["type"] == "extra_forbidden":
        close = difflib.get_close_matches(key, Settings.model_fields, n=1)
        return f"{key} is not a setting of Strata" + (f"; did you mean {close[0]}?" if close else "")
    shown = "***" if _is_secret(key) else repr(first["input"])
    return f"{key} = {shown} is not valid: {first['msg'].removeprefix('Value error, ')}"


def _as_written(key: str) -> str:
    """pydantic names a field by its first alias; the user may have set the other one."""
    for field in Settings.model_fields:
        names = variables(field)
        if key in names:
            return next((name for name in names if name in environment()), field)
    return key


def _is_secret(key: str) -> bool:
    return any(part in key.lower() for part in ("secret", "password", "token", "journal"))
