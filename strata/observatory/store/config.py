"""Where the metric store is: a folder for the embedded engine, or a ClickHouse server."""

from dataclasses import dataclass
from pathlib import Path

from strata.config import Settings

__all__ = ["StoreConfig"]


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
        )

    @property
    def label(self) -> str:
        """For people: `embedded`, or the server's address."""
        return "embedded" if self.path is not None else f"clickhouse at {self.host}:{self.port}"
