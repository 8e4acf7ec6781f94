"""Settings, read once at the edge: flags over environment over `.env` over strata.toml over defaults.

Every variable X is also accepted as STRATA_X. Unknown keys and bad values are refused by name, with what is allowed.
"""

import difflib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, AliasChoices, BeforeValidator, Field, SecretStr, ValidationError
from pydantic_settings import (
    BaseSettings,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    TomlConfigSettingsSource,
)

from strata.errors import InvalidConfig

__all__ = ["RANK_VARIABLES", "Settings", "check_storage", "dotenv_variables", "environment", "load_settings", "masked"]

_DOTENV = Path(".env")

# Set by agents for the ranks they start, and read by the SDK, not here.
RANK_VARIABLES = frozenset(
    {
        "STRATA_AGENT_ID",
        "STRATA_AGENT_NUMBER",
        "STRATA_ATTEMPT",
        "STRATA_BENCH_PICTURES",
        "STRATA_BENCH_REPORT",
        "STRATA_BENCH_SOAK_S",
        "STRATA_BENCH_VENVS",
        "STRATA_CONFIG_JSON",
        "STRATA_DATASET_ID",
        "STRATA_DATASET_JSON",
        "STRATA_FAULT",
        "STRATA_GANG_PORT",
        "STRATA_GENERATION",
        "STRATA_INCARNATION",
        "STRATA_LOCAL_RANK",
        "STRATA_RANK",
        "STRATA_RANK_SECRET",
        "STRATA_REQUIRE_WEB",
        "STRATA_RUN_ID",
        "STRATA_SUPERVISOR_PID",
        "STRATA_TASK_ID",
        "STRATA_TELEMETRY_ADDR",
        "STRATA_WORKER_ID",
        "STRATA_WORLD_SIZE",
    }
)

_ADDRESS = re.compile(r"(?:https?://)?(?:\[[0-9a-fA-F:]+\]|[A-Za-z0-9._-]+):(\d{1,5})\Z")

_ORIGIN = re.compile(r"https?://(?:\[[0-9a-f:]+\]|[a-z0-9._-]+)(?::\d{1,5})?\Z")


def _check_address(value: str) -> str:
    match = _ADDRESS.match(value)
    if match is None or int(match[1]) > 65535:
        raise ValueError("expected host:port, such as localhost:50051")
    return value.removeprefix("http://").removeprefix("https://")


def _split_origins(value: object) -> object:
    return [part.strip() for part in value.split(",") if part.strip()] if isinstance(value, str) else value


def _check_origins(values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if not _ORIGIN.match(value):
            raise ValueError(f"{value!r} is not an origin; write scheme, host and port, such as https://host:8443")
    return values


Origins = Annotated[tuple[str, ...], NoDecode, BeforeValidator(_split_origins), AfterValidator(_check_origins)]
Address = Annotated[str, AfterValidator(_check_address)]
Port = Annotated[int, Field(ge=0, le=65535)]
Seconds = Annotated[float, Field(gt=0, allow_inf_nan=False)]


def _env(name: str) -> AliasChoices:
    return AliasChoices(f"STRATA_{name}", name)


class Settings(BaseSettings):
    """All settings of a Strata process. Fields without an unprefixed twin in the contract are STRATA_* only."""

    model_config = SettingsConfigDict(
        extra="forbid",
        frozen=True,
        populate_by_name=True,
        toml_file="strata.toml",
        env_file=_DOTENV,
        dotenv_filtering="only_existing",  # the file is the whole project's, not ours alone
    )

    coordinator_addr: Address = Field(default="localhost:50051", validation_alias=_env("COORDINATOR_ADDR"))
    heartbeat_timeout: Seconds = Field(default=30.0, validation_alias=_env("HEARTBEAT_TIMEOUT"))
    poll_interval_sec: Seconds = Field(default=3.0, validation_alias=_env("POLL_INTERVAL_SEC"))

    storage_backend: Literal["local", "s3"] = Field(default="local", validation_alias=_env("STORAGE_BACKEND"))
    checkpoint_bucket: str = Field(default="", validation_alias=_env("CHECKPOINT_BUCKET"))
    aws_region: str | None = Field(default=None, validation_alias=_env("AWS_REGION"))
    aws_access_key_id: str | None = Field(default=None, validation_alias=_env("AWS_ACCESS_KEY_ID"))
    aws_secret_access_key: SecretStr | None = Field(default=None, validation_alias=_env("AWS_SECRET_ACCESS_KEY"))
    aws_endpoint_url: str | None = Field(default=None, validation_alias=_env("AWS_ENDPOINT_URL"))

    ch_host: str | None = Field(default=None, validation_alias=_env("CH_HOST"))
    ch_port: Port = Field(default=8123, validation_alias=_env("CH_PORT"))
    ch_protocol: Literal["http", "https"] = Field(default="http", validation_alias=_env("CH_PROTOCOL"))
    ch_database: str = Field(
        default="training_observability", pattern=r"^[A-Za-z_]\w*$", validation_alias=_env("CH_DATABASE")
    )
    ch_user: str = Field(default="default", validation_alias=_env("CH_USER"))
    ch_password: SecretStr = Field(default=SecretStr(""), validation_alias=_env("CH_PASSWORD"))
    retention_days: int | None = Field(default=None, ge=1, validation_alias=AliasChoices("STRATA_RETENTION_DAYS"))

    observatory_priority: Literal["normal", "background"] = Field(
        default="normal", validation_alias=AliasChoices("STRATA_OBSERVATORY_PRIORITY")
    )

    log: str = Field(default="info", validation_alias=AliasChoices("STRATA_LOG", "RUST_LOG"))
    log_format: Literal["auto", "human", "json"] = Field(
        default="auto", validation_alias=AliasChoices("STRATA_LOG_FORMAT")
    )
    quiet: bool = Field(default=False, validation_alias=AliasChoices("STRATA_QUIET"))
    token: SecretStr | None = Field(default=None, validation_alias=AliasChoices("STRATA_TOKEN"))
    insecure: bool = Field(default=False, validation_alias=AliasChoices("STRATA_INSECURE"))
    webhook_url: str | None = Field(default=None, validation_alias=AliasChoices("STRATA_WEBHOOK_URL"))

    data_dir: Path = Field(default=Path(".strata"), validation_alias=AliasChoices("STRATA_DATA_DIR"))
    allowed_origins: Origins = Field(default=(), validation_alias=AliasChoices("STRATA_ALLOWED_ORIGINS"))
    host: str = Field(default="127.0.0.1", validation_alias=AliasChoices("STRATA_HOST"))
    grpc_port: Port = Field(default=50051, validation_alias=AliasChoices("STRATA_GRPC_PORT"))
    http_port: Port = Field(default=3000, validation_alias=AliasChoices("STRATA_HTTP_PORT"))
    telemetry_port: Port = Field(default=50052, validation_alias=AliasChoices("STRATA_TELEMETRY_PORT"))
    slots: int | None = Field(default=None, ge=1, le=4096, validation_alias=AliasChoices("STRATA_SLOTS"))
    task_types: dict[str, list[str]] = Field(default_factory=dict, validation_alias=AliasChoices("STRATA_TASK_TYPES"))

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
    except (OSError, ValueError) as error:  # strata.toml that is not TOML; ValueError covers TOMLDecodeError
        raise InvalidConfig(f"strata.toml cannot be read: {error}") from None


def environment() -> Mapping[str, str]:
    """The process's variables, and those of a `.env` in the working folder that it does not have itself."""
    return {**dotenv_variables(), **os.environ}


def dotenv_variables() -> dict[str, str]:
    """What `.env` in the working folder sets; a folder of that name (a virtualenv) is none."""
    from dotenv import dotenv_values  # here: most processes have no such file

    if not _DOTENV.is_file():
        return {}
    try:
        return {name: value for name, value in dotenv_values(_DOTENV).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f".env cannot be read: {error}") from None


def check_storage(settings: Settings) -> None:
    """Before anything starts: a task would find out only when it saves."""
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
    known = {name for field in Settings.model_fields for name in variables(field)} | RANK_VARIABLES
    for name in sorted(given):
        if name.startswith("STRATA_") and name not in known:
            close = difflib.get_close_matches(name, known, n=1)
            hint = f"Did you mean {close[0]}?" if close else "Unset it; docs/configuration.md lists what there is."
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
    return any(part in key.lower() for part in ("secret", "password", "token"))
