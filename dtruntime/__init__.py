"""The SDK under the specification's second name: `from dtruntime import CheckpointManager` is strata's own."""

from typing import TYPE_CHECKING, Any

import strata

if TYPE_CHECKING:
    from strata import (
        AsyncCheckpointWriter,
        CheckpointManager,
        DatasetRegistry,
        ShardManager,
        TrainingOrchestrator,
        barrier,
        init,
        log,
        should_stop,
    )

__all__ = [
    "AsyncCheckpointWriter",
    "CheckpointManager",
    "DatasetRegistry",
    "ShardManager",
    "TrainingOrchestrator",
    "barrier",
    "init",
    "log",
    "should_stop",
]


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'dtruntime' has no attribute {name!r}")
    return getattr(strata, name)
