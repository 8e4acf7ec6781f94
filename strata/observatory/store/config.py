"""Where the metric store is: a folder for the embedded engine, or a ClickHouse server."""

import re
from dataclasses import dataclass
from pathlib import Path

from strata.config import Settings
from strata.errors import InvalidConfig

__all__ = ["StoreConfig"]

_HOST = re.compile(r"\s*(\[[0-9a-fA-F:]+\]|[\w.-]+)(?::(\d{1,5}))?\s*\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreConfig:
    """Travels to the store process as its first message, so that no password is ever in an argument list."""

    path: str | None
    host: str = ""
    port: int = 8123
    secure: bool = False
    user: str = "default"
    password: str = ""
    database: str = "training_observability"
    retention_days: int | None = None
    cluster: str = ""
    ca_file: str = ""
    cert: str = ""
    key: str = ""

    @classmethod
    def from_settings(cls, settings: Settings) -> "StoreConfig":
        return cls(
            path=None if settings.ch_host else str(Path(settings.data_dir).resolve() / "metrics"),
            host=settings.ch_host or "",
            port=settings.ch_port,
            secure=settings.ch_protocol == "https",
            user=settings.ch_user,
            password=settings.ch_password.get_secret_value(),
            database=settings.ch_database,
            retention_days=settings.retention_days,
            cluster=settings.ch_cluster or "",
            ca_file=str(settings.ch_ca_file or ""),
            cert=str(settings.ch_cert or ""),
            key=str(settings.ch_key or ""),
        )

    def __post_init__(self) -> None:
        if self.path is not None:
            return
        files = {"CH_CA_FILE": self.ca_file, "CH_CERT": self.cert, "CH_KEY": self.key}
        given = {name: file for name, file in files.items() if file}
        if not all(_HOST.match(part) for part in self.host.split(",")):
            raise InvalidConfig(f"CH_HOST is a host, or several as a,b:8124, this is {self.host!r}")
        if given and not self.secure:
            raise InvalidConfig(f"{' and '.join(given)} takes CH_PROTOCOL=https")
        for name, file in given.items():
            if not Path(file).is_file():
                raise InvalidConfig(f"{name} names no file: {file}")

    @property
    def hosts(self) -> list[tuple[str, int]]:
        """Of several servers each may have a port of its own."""
        named = [match for part in self.host.split(",") if (match := _HOST.match(part))]
        return [(match[1], int(match[2] or self.port)) for match in named]

    @property
    def label(self) -> str:
        """For people: `embedded`, or the servers' addresses."""
        if self.path is not None:
            return "embedded"
        return f"clickhouse at {', '.join(f'{host}:{port}' for host, port in self.hosts)}"
