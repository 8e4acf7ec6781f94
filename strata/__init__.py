"""Strata: a distributed-training runtime. `import strata` is light: each name loads what it needs when first used."""

import importlib
import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from strata import data as data
    from strata.checkpoint import AsyncCheckpointWriter, CheckpointManager
    from strata.client.api import Api
    from strata.errors import StrataError
    from strata.integrations.elastic import elastic
    from strata.integrations.training import training
    from strata.sharding import ShardManager
    from strata.worker.log_handler import LogHandler
    from strata.worker.media.document import Html, Text
    from strata.worker.media.file import File
    from strata.worker.media.histogram import Histogram
    from strata.worker.media.image import Image
    from strata.worker.media.table import Table
    from strata.worker.orchestrator import TrainingOrchestrator
    from strata.worker.registry import DatasetRegistry
    from strata.worker.run import Run, barrier, finish, init, log, section, should_stop
    from strata.worker.sync import sync

__version__ = "0.1.0"

__all__ = [
    "Api",
    "AsyncCheckpointWriter",
    "CheckpointManager",
    "DatasetRegistry",
    "File",
    "Histogram",
    "Html",
    "Image",
    "LogHandler",
    "Run",
    "ShardManager",
    "StrataError",
    "Table",
    "Text",
    "TrainingOrchestrator",
    "__version__",
    "barrier",
    "data",
    "elastic",
    "finish",
    "init",
    "log",
    "section",
    "should_stop",
    "sync",
    "training",
]

_HOMES = {
    "Api": "strata.client.api",
    "AsyncCheckpointWriter": "strata.checkpoint",
    "CheckpointManager": "strata.checkpoint",
    "DatasetRegistry": "strata.worker.registry",
    "LogHandler": "strata.worker.log_handler",
    "ShardManager": "strata.sharding",
    "StrataError": "strata.errors",
    "elastic": "strata.integrations.elastic",
    "TrainingOrchestrator": "strata.worker.orchestrator",
    "sync": "strata.worker.sync",
    "training": "strata.integrations.training",
    "File": "strata.worker.media.file",
    "Histogram": "strata.worker.media.histogram",
    "Image": "strata.worker.media.image",
    "Table": "strata.worker.media.table",
    **dict.fromkeys(("Html", "Text"), "strata.worker.media.document"),
    **dict.fromkeys(("Run", "barrier", "finish", "init", "log", "section", "should_stop"), "strata.worker.run"),
}


def __getattr__(name: str) -> Any:
    if name == "data":
        return importlib.import_module("strata.data")
    if name not in _HOMES:
        raise AttributeError(f"module 'strata' has no attribute {name!r}")
    if name == "CheckpointManager" and "STRATA_TASK_ID" in os.environ:
        importlib.import_module("strata.worker.run").own_checkpoints()
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return __all__
