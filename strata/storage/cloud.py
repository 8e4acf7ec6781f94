"""A store in a bucket of S3, Google Cloud Storage or Azure, through obstore: the only file that imports it.

Uploads stream as multipart with per-part retries inside obstore; single requests are retried by `Retries`, which says
so in the log. Payloads are unsigned because every chunk has our own hash (measured: signing costs 15 % of the
throughput).
"""

import contextlib
import time
from collections.abc import Iterable, Iterator, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypedDict

import numpy as np

from strata.errors import (
    InvalidArgument,
    MissingExtra,
    StorageAccessDenied,
    StorageConflict,
    StorageError,
    StorageNotFound,
)
from strata.storage.base import Buffer, Listing, StoredObject, check_key
from strata.storage.options import StorageOptions
from strata.storage.retries import Retries, first_line
from strata.storage.uploads import MultipartUploads

if TYPE_CHECKING:
    from obstore.store import ClientConfig, RetryConfig
    from obstore.store import ObjectStore as ObstoreStore

    class _Common(TypedDict):
        client_options: ClientConfig
        retry_config: RetryConfig


__all__ = ["CloudStore", "open_cloud"]

_BUCKET_GONE = ("NoSuchBucket", "ContainerNotFound", "bucket does not exist")
_DENIED = ("403 Forbidden", "401 Unauthorized", "InvalidAccessKeyId", "SignatureDoesNotMatch", "AccessDenied")
_WHOLE_ANSWER = "non-partial response"
_RANGE_PAST_END = ("416 Range Not Satisfiable", "Wanted range starting at")  # by the server, and by obstore itself


class _Cloud(NamedTuple):
    """What differs between the clouds besides their clients."""

    scheme: str
    address: str  # what to check when it cannot be reached
    keys: str  # what to check when it refuses


_CLOUDS = {
    "s3": _Cloud(
        "s3",
        "AWS_ENDPOINT_URL, and that AWS_REGION matches the location of the bucket",
        ".env or IAM Role permissions: AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, s3:GetObject, s3:ListBucket",
    ),
    "gcs": _Cloud(
        "gs",
        "GOOGLE_BASE_URL, if one is set",
        "GOOGLE_SERVICE_ACCOUNT (a key file) or the host's service account: it needs storage.objects.* in the bucket",
    ),
    "azure": _Cloud(
        "az",
        "AZURE_STORAGE_ENDPOINT, if one is set, and AZURE_STORAGE_ACCOUNT_NAME",
        "AZURE_STORAGE_ACCOUNT_KEY or AZURE_STORAGE_SAS_KEY, or the identity's role: Storage Blob Data Contributor",
    ),
}


def open_cloud(provider: str, bucket: str, prefix: str, options: StorageOptions) -> "CloudStore":
    """Builds the client; the first request is made by the first call. `provider` is s3, gcs or azure."""
    try:
        from obstore import exceptions
        from obstore import store as stores
    except ImportError as error:
        raise MissingExtra("obstore", "s3") from error
    below = prefix or None

    def make(retries: int) -> "ObstoreStore":
        if provider == "s3":
            common = _common(options, retries, options.endpoint_url)
            return stores.S3Store(bucket, prefix=below, **common, **_s3_settings(options))
        if provider == "gcs":
            common = _common(options, retries, options.google_endpoint)
            return stores.GCSStore(bucket, prefix=below, **common, **_given(base_url=options.google_endpoint))
        common = _common(options, retries, options.azure_endpoint)
        return stores.AzureStore(bucket, prefix=below, **common, **_given(endpoint=options.azure_endpoint))

    uploads = MultipartUploads(bucket, prefix, options) if provider == "s3" and options.access_key_id else None
    cloud = _CLOUDS[provider]
    uri = f"{cloud.scheme}://{bucket}" + (f"/{prefix}" if prefix else "")
    try:
        clients = _Clients(once=make(0), patient=make(options.max_retries))
    except (exceptions.BaseError, ValueError) as error:  # no account, an endpoint that is none, a name no bucket has
        hint = f"Check {cloud.address}."
        raise InvalidArgument(f"{uri!r} cannot be opened: {first_line(error)}", hint=hint) from None
    return CloudStore(clients, uri, options, uploads, cloud)


def _common(options: StorageOptions, retries: int, endpoint: str | None) -> "_Common":
    return {
        "client_options": {
            "timeout": timedelta(seconds=options.request_timeout_s),
            "allow_http": (endpoint or "").startswith("http://"),
        },
        "retry_config": {
            "max_retries": retries,
            "retry_timeout": timedelta(seconds=options.retry_timeout_s),
            "backoff": {"init_backoff": timedelta(milliseconds=100), "max_backoff": timedelta(seconds=10), "base": 2},
        },
    }


def _s3_settings(options: StorageOptions) -> dict[str, Any]:
    return _given(
        region=options.region,
        access_key_id=options.access_key_id,
        secret_access_key=options.secret_access_key,
        session_token=options.session_token,
        endpoint=options.endpoint_url,
        unsigned_payload=True,
    )


def _given(**settings: Any) -> dict[str, Any]:
    """Only what is set: an absent key leaves obstore's own chain (IAM role, web identity, container) in charge."""
    return {name: value for name, value in settings.items() if value is not None}


class _Clients(NamedTuple):
    """Two clients of one bucket: one for single requests, which `Retries` repeats, and one for streams, whose parts
    obstore repeats by itself."""

    once: "ObstoreStore"
    patient: "ObstoreStore"


class CloudStore:
    """One bucket, or a prefix in it."""

    parallel_reads = 8

    def __init__(
        self, clients: _Clients, uri: str, options: StorageOptions, uploads: MultipartUploads | None, cloud: _Cloud
    ) -> None:
        import obstore

        self.uri = uri
        self._client = obstore
        self._store = clients.once
        self._streams = clients.patient
        self._retries = Retries(uri, options)
        self._options = options
        self._uploads = uploads
        self._cloud = cloud

    def put(self, key: str, data: Buffer, *, create: bool = False) -> None:
        with self._translated(check_key(key)):
            mode: Literal["create", "overwrite"] = "create" if create else "overwrite"
            self._retries.call(
                "put", key, lambda: self._client.put(self._store, key, data, mode=mode, use_multipart=False)
            )

    def put_stream(self, key: str, chunks: Iterable[memoryview], *, size: int | None = None) -> None:
        parts = self._options.parts_of(size)
        if size is not None and size <= parts.size:  # one request instead of three
            self.put(key, b"".join(chunks))
            return
        with self._translated(check_key(key)), self._retries.watch(key, self._probe) as pulled:
            self._client.put(
                self._streams,
                key,
                pulled(chunks),
                use_multipart=True,
                chunk_size=parts.size,
                max_concurrency=parts.inflight,
            )

    def get(self, key: str) -> bytes:
        with self._translated(check_key(key)):
            return self._retries.call("get", key, lambda: bytes(self._client.get(self._store, key).bytes()))

    def read_into(self, key: str, offset: int, buffers: Sequence[memoryview]) -> int:
        wanted = sum(len(buffer) for buffer in buffers)
        check_key(key)
        if wanted == 0:
            return 0
        try:
            with self._translated(key):
                data = memoryview(
                    self._retries.call(
                        "get", key, lambda: self._client.get_range(self._store, key, start=offset, length=wanted)
                    )
                )
        except StorageError as error:
            if any(mark in str(error.__cause__) for mark in _RANGE_PAST_END):
                return 0
            if offset or _WHOLE_ANSWER not in str(error.__cause__):
                raise
            data = memoryview(self.get(key))[:wanted]  # rclone answers 200 when the range is the whole object
        received = np.frombuffer(data, dtype=np.uint8)
        done = 0
        for buffer in buffers:
            piece = received[done : done + len(buffer)]
            # numpy lets other threads run while it copies; a memoryview would hold them all up.
            np.copyto(np.frombuffer(buffer, dtype=np.uint8)[: len(piece)], piece)
            done += len(piece)
        return done

    def list(self, prefix: str = "") -> Listing:
        check_key(prefix, folder=True)
        folder = prefix.rstrip("/")
        with self._translated(prefix):
            found = self._retries.call(
                "list", prefix, lambda: self._client.list_with_delimiter(self._store, folder or None)
            )
        objects = [
            StoredObject(key=entry["path"], size=entry["size"], modified_at=entry["last_modified"].timestamp())
            for entry in found["objects"]
            if entry["path"] != folder  # the empty marker that some tools and servers keep for a folder
        ]
        folders = sorted(f"{name.rstrip('/')}/" for name in found["common_prefixes"])
        return Listing(objects=tuple(sorted(objects, key=lambda entry: entry.key)), folders=tuple(folders))

    def delete(self, key: str) -> None:
        check_key(key, folder=True)
        with self._translated(key):
            self._retries.call("delete", key, lambda: self._delete(key))

    def _delete(self, key: str) -> None:
        if not key.endswith("/"):
            with contextlib.suppress(FileNotFoundError):
                self._client.delete(self._store, key)
            return
        for batch in self._client.list(self._store, key.rstrip("/"), chunk_size=1000):
            self._client.delete(self._store, [entry["path"] for entry in batch])

    def _probe(self) -> None:
        """One small request, without retries."""
        with self._translated(""):
            self._client.list_with_delimiter(self._store, None)

    def abort_uploads(self, older_than_s: float) -> int:
        """Unfinished uploads of killed writers. Without keys of our own (a role) it does nothing: set a lifecycle
        rule."""
        if self._uploads is None:
            return 0
        stale = [upload for upload in self._uploads.list() if time.time() - upload.begun_at > older_than_s]
        for upload in stale:
            self._uploads.abort(upload)
        return len(stale)

    @contextlib.contextmanager
    def _translated(self, key: str) -> Iterator[None]:
        """obstore's errors as ours. Some refusals come as its GenericError, so the text is read too."""
        from obstore import exceptions

        where = f"{self.uri}/{key}" if key else self.uri
        try:
            yield
        except (exceptions.AlreadyExistsError, exceptions.PreconditionError) as error:
            raise StorageConflict(f"{where} exists already") from error
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            raise self._denied(where, error) from error
        except FileNotFoundError as error:
            raise self._missing(where, str(error)) from error
        except exceptions.BaseError as error:
            text = str(error)
            if any(mark in text for mark in _BUCKET_GONE):
                raise self._missing(where, text) from error
            if any(mark in text for mark in _DENIED):
                raise self._denied(where, error) from error
            raise StorageError(f"{where}: {first_line(error)}", hint=f"Check {self._cloud.address}.") from error

    def _denied(self, where: str, error: Exception) -> StorageAccessDenied:
        return StorageAccessDenied(f"access denied to {where}: {first_line(error)}", hint=f"Verify {self._cloud.keys}.")

    def _missing(self, where: str, text: str) -> StorageNotFound:
        if any(mark in text for mark in _BUCKET_GONE):
            bucket = self.uri.partition("://")[2].partition("/")[0]
            hint = f"Create the bucket {bucket!r}, or set CHECKPOINT_BUCKET; check {self._cloud.address}."
            return StorageNotFound(f"no bucket for {where}", hint=hint)
        return StorageNotFound(f"no object {where}")
