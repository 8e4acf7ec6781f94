"""Settings of all sources, checked."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata.config.plain import read_plainly
from strata.config.settings import SETTINGS, Secret, Settings
from strata.config.sources import environment
from strata.config.variables import refuse_unknown
from strata.errors import InvalidConfig

__all__ = ["check_storage", "load_settings", "masked"]


def load_settings(flags: Mapping[str, Any] | None = None) -> Settings:
    """Settings from all sources; `flags` are those the user gave on the command line (None = not given)."""
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    refuse_unknown(environment())
    plain = read_plainly(given, os.environ)
    if plain is not None:
        return plain
    from strata.config.judge import read_judged  # here: pydantic-settings takes as long as all else of a script's start

    return read_judged(given)


def check_storage(settings: Settings) -> None:
    """Refuses s3 without a bucket before anything starts; a task would find out only when it saves."""
    if settings.storage_backend == "s3" and not settings.checkpoint_bucket:
        raise InvalidConfig(
            "STORAGE_BACKEND is s3 but CHECKPOINT_BUCKET is not set",
            hint="Set CHECKPOINT_BUCKET to the name of the bucket, or STORAGE_BACKEND=local.",
        )


def masked(settings: Settings) -> dict[str, Any]:
    """Every setting as JSON has it, secrets masked: what `strata config show` prints."""
    return {name: _as_json(getattr(settings, name)) for name in SETTINGS}


def _as_json(value: Any) -> Any:
    if isinstance(value, Secret | Path):
        return str(value)
    return list(value) if isinstance(value, tuple) else value
