"""Datasets of every format, for the readers' suite."""

from tests.support.datasets import cache_home, dataset

__all__ = ["cache_home", "dataset"]
