"""Where settings come from beside the environment: `.env` and strata.toml of the working folder."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from strata.config.settings import SETTINGS
from strata.config.variables import variables
from strata.errors import InvalidConfig

__all__ = ["DOTENV", "TOML", "dotenv_variables", "environment", "toml_values"]

DOTENV, TOML = Path(".env"), Path("strata.toml")


def environment() -> Mapping[str, str]:
    """The process's variables; below them those of `.env` in the working folder, then strata.toml's, as if set. A
    setting's variable that is empty is not set: so scripts and compose files pass on what nobody has said."""
    merged = _without_empty(os.environ)
    for layer in (_without_empty(dotenv_variables()), _toml_variables()):
        spellings = [variables(field) for field in SETTINGS] if layer else []
        taken = {name for names in spellings if any(one in merged for one in names) for name in names}
        merged |= {name: value for name, value in layer.items() if name not in taken and name not in merged}
    return merged


def _without_empty(given: Mapping[str, str]) -> dict[str, str]:
    ours = {name for field in SETTINGS for name in variables(field)}
    return {name: value for name, value in given.items() if value or name not in ours}


def _toml_variables() -> dict[str, str]:
    """What strata.toml sets, as the variables that say the same. load_settings refuses unknown keys."""
    return {
        variables(field)[0]: value if isinstance(value, str) else json.dumps(value)
        for field, value in toml_values().items()
        if field in SETTINGS
    }


def toml_values() -> dict[str, Any]:
    """What strata.toml in the working folder says, by its keys."""
    if not TOML.is_file():
        return {}
    import tomllib  # here, as below: most processes have no such file

    try:
        return tomllib.loads(TOML.read_bytes().decode())
    except (OSError, ValueError) as error:  # ValueError covers TOMLDecodeError
        raise InvalidConfig(f"strata.toml cannot be read: {error}") from None


def dotenv_variables() -> dict[str, str]:
    """What `.env` in the working folder sets. A folder of that name (a virtualenv) is ignored."""
    if not DOTENV.is_file():
        return {}
    from dotenv import dotenv_values

    try:
        return {name: value for name, value in dotenv_values(DOTENV).items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidConfig(f".env cannot be read: {error}") from None
