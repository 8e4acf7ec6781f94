"""From an address that a user writes to the store behind it: a folder, s3://, gs://, az:// or memory://."""

import os
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit

from strata.config import environment
from strata.errors import InvalidArgument
from strata.storage.base import ObjectStore
from strata.storage.memory import MemoryStore
from strata.storage.options import StorageOptions
from strata.types.shown import check_path

if TYPE_CHECKING:
    from strata.storage.local import LocalStore

__all__ = ["open_store"]

_CLOUD = {"s3": "s3", "s3a": "s3", "gs": "gcs", "gcs": "gcs", "az": "azure", "azure": "azure", "abfs": "azure"}


def open_store(uri: str | os.PathLike[str], options: StorageOptions | None = None) -> ObjectStore:
    """The store for a folder (`ckpt`, `/data/ckpt`, `file:///data/ckpt`) or `s3://bucket/prefix` and its like.

    Nothing is contacted yet. `options` default to what the environment says.
    """
    text = check_path("the checkpoint path", os.fspath(uri))
    if "://" not in text:
        if not text:
            raise InvalidArgument("the checkpoint path is empty", hint="Give a folder, or s3://bucket/prefix.")
        return _folder(text)
    try:
        parts = urlsplit(text)
    except ValueError as error:
        raise InvalidArgument(f"{text!r} is not an address: {error}") from None
    if parts.scheme == "file":
        return _folder(unquote(parts.path))
    if parts.scheme == "memory":
        return MemoryStore(text)
    provider = _CLOUD.get(parts.scheme)
    if provider is None:
        allowed = "a folder, file://, s3://bucket/prefix, gs://bucket/prefix, az://container/prefix or memory://"
        raise InvalidArgument(f"{text!r} is not a place for checkpoints", hint=f"Allowed: {allowed}.")
    if not parts.netloc:
        raise InvalidArgument(f"{text!r} names no bucket", hint=f"Write {parts.scheme}://bucket/prefix.")
    from strata.storage.cloud import open_cloud  # here, as below: an agent asks where checkpoints lie, and copies none

    settings = StorageOptions.from_environment(environment()) if options is None else options
    return open_cloud(provider, parts.netloc, parts.path.strip("/"), settings)


def _folder(text: str) -> "LocalStore":
    from strata.storage.local import LocalStore

    try:
        return LocalStore(check_path("the checkpoint path", text))
    except RuntimeError as error:  # ~somebody, who is not known here
        raise InvalidArgument(f"{text!r} is no folder: {error}") from None
