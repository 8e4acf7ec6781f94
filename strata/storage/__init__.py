"""Where checkpoint bytes live: one small interface over a folder, a bucket or memory."""

from strata.storage.base import Listing, ObjectStore, StoredObject
from strata.storage.options import StorageOptions
from strata.storage.uri import open_store

__all__ = ["Listing", "ObjectStore", "StorageOptions", "StoredObject", "open_store"]
