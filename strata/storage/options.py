"""The settings of a store in the cloud. They are read from the environment once, and passed on as a record."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self

from strata.errors import InvalidConfig

__all__ = ["Parts", "StorageOptions"]

_MIB = 1 << 20
_PART_BYTES = 8 * _MIB
_MAX_PARTS = 9_000  # S3 takes 10,000: at 8 MiB they ended at 70B parameters (awslabs/s3-connector-for-pytorch#219)
_BLIND_PARTS = (32 * _MIB, 4)  # of an object whose size nobody knows: up to 280 GiB, in 160 MiB of memory
_ENDPOINTS = {
    "AWS_ENDPOINT_URL": "endpoint_url",
    "GOOGLE_BASE_URL": "google_endpoint",
    "AZURE_STORAGE_ENDPOINT": "azure_endpoint",
}


class Parts(NamedTuple):
    """How an object is sent: bytes of a part, and how many parts are under way at once."""

    size: int
    inflight: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageOptions:
    """Credentials and transfer settings; what is None is found by the cloud's own chain (IAM role, workload identity).

    Sixteen parts are under way at once, for S3 gives one connection 85 to 90 MB/s (benchmarks/dcp.py): of 8 MiB, or
    larger where an object would have too many, or of `part_size`. They lie in the memory of the state that is saved.
    """

    region: str | None = None
    access_key_id: str | None = None
    secret_access_key: str | None = field(default=None, repr=False)
    session_token: str | None = field(default=None, repr=False)
    endpoint_url: str | None = None
    google_endpoint: str | None = None
    azure_endpoint: str | None = None
    part_size: int | None = None
    max_inflight: int = 16
    max_retries: int = 8
    retry_timeout_s: float = 120.0
    request_timeout_s: float = 120.0

    def __post_init__(self) -> None:
        if self.part_size is not None and not 5 * _MIB <= self.part_size <= 5 << 30:
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

    def parts_of(self, size: int | None) -> Parts:
        """For an object of that many bytes; None when nobody knows."""
        if size is None:
            blind, few = _BLIND_PARTS
            return Parts(self.part_size or blind, min(self.max_inflight, few))
        return Parts(max(self.part_size or _PART_BYTES, -(-size // _MAX_PARTS)), self.max_inflight)

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
