"""The settings of a store in the cloud. They are read from the environment once, and passed on as a record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Self

from strata.errors import InvalidConfig

__all__ = ["StorageOptions"]

_MIB = 1 << 20
_ENDPOINTS = {
    "AWS_ENDPOINT_URL": "endpoint_url",
    "GOOGLE_BASE_URL": "google_endpoint",
    "AZURE_STORAGE_ENDPOINT": "azure_endpoint",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Credentials and transfer settings; what is None is found by the cloud's own chain (IAM role, workload identity).

    Parts of 32 MiB, four in flight: 8 MiB parts ran into S3's part limit at 70B parameters
    (awslabs/s3-connector-for-pytorch#219) and were no faster here.
    Memory per stream is bounded by part_size × (max_inflight + 1).
    """

    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    endpoint_url: str | None = None
    google_endpoint: str | None = None
    azure_endpoint: str | None = None
    part_size: int = 32 * _MIB
    max_inflight: int = 4
    max_retries: int = 8
    retry_timeout_s: float = 120.0
    request_timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if not 5 * _MIB <= self.part_size <= 5 << 30:
            raise InvalidConfig(f"part_size is {self.part_size}; S3 allows 5 MiB to 5 GiB")
        if not 1 <= self.max_inflight <= 64:
            raise InvalidConfig(f"max_inflight is {self.max_inflight}; allowed are 1 to 64")
        if self.max_retries < 0:
            raise InvalidConfig(f"max_retries is {self.max_retries}; it must be 0 or more")
        for name in ("retry_timeout_s", "request_timeout_s"):
            if getattr(self, name) <= 0:
                raise InvalidConfig(f"{name} is {getattr(self, name)}; it must be above 0")
        for name, field_name in _ENDPOINTS.items():
            endpoint = getattr(self, field_name)
            if endpoint is not None and not endpoint.startswith(("http://", "https://")):
                raise InvalidConfig(f"{name} is {endpoint!r}; it must begin with http:// or https://")
        if (self.access_key_id is None) != (self.secret_access_key is None):
            missing = "AWS_SECRET_ACCESS_KEY" if self.secret_access_key is None else "AWS_ACCESS_KEY_ID"
            raise InvalidConfig(f"{missing} is not set although its twin is; set both or neither")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """From AWS_REGION, AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN and the clouds' endpoints;
        STRATA_X wins over X."""

        def read(name: str) -> str | None:
            return environment.get(f"STRATA_{name}") or environment.get(name) or None

        names = ("region", "access_key_id", "secret_access_key", "session_token")
        given: dict[str, Any] = {name: read(f"AWS_{name.upper()}") for name in names}
        given |= {field_name: read(name) for name, field_name in _ENDPOINTS.items()}
        return cls(**given)
