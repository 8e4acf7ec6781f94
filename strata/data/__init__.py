"""Data for training: `Loader` reads files of any supported format in an order that no failure can change.

Nothing heavy is imported here: pyarrow and Pillow are loaded by the first file that needs them.
"""

from strata.data.config import LoaderConfig
from strata.data.describe import describe_dataset, read_range
from strata.data.loader import Loader
from strata.data.manifest import Manifest, build_manifest
from strata.data.peek import peek
from strata.data.plan import DatasetSource, PlanSource, StaticPlan
from strata.data.preview import Preview
from strata.data.queue import LocalQueue, QueueSource
from strata.data.queue_loader import QueueConfig, QueueLoader
from strata.data.stats import LoaderStats
from strata.data.table.columns import Columns

__all__ = [
    "Columns",
    "DatasetSource",
    "Loader",
    "LoaderConfig",
    "LoaderStats",
    "LocalQueue",
    "Manifest",
    "PlanSource",
    "Preview",
    "QueueConfig",
    "QueueLoader",
    "QueueSource",
    "StaticPlan",
    "build_manifest",
    "describe_dataset",
    "peek",
    "read_range",
]
