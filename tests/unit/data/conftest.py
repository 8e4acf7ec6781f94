"""Datasets of every format for the tests of this folder, and how hard hypothesis looks."""

from hypothesis import settings

from tests.support.datasets import cache_home, dataset, make_dataset, parquet

__all__ = ["cache_home", "dataset", "make_dataset", "parquet"]

settings.register_profile("data", deadline=None, max_examples=25)
settings.load_profile("data")
