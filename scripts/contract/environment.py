"""environment.md: every variable that Strata reads, from strata/config/settings.py."""

from dataclasses import Field
from typing import Any, Literal, get_args, get_origin

from scripts.contract.markdown import code, table
from strata.config import RANK_VARIABLES, SETTINGS, Secret, default_of, variables

__all__ = ["render"]

_HEAD = """# Environment

Generated from `strata/config/settings.py` by `make reference`; [configuration.md](../configuration.md) says which
source wins. Each variable of the first table is also a key of `strata.toml`, in lower case and without its prefix.

"""

_RANKS = """
## Set for the ranks of a task

The agent sets these for every process it starts, beside `RANK`, `WORLD_SIZE`, `LOCAL_RANK`, `LOCAL_WORLD_SIZE`,
`MASTER_ADDR` and `MASTER_PORT`, which frameworks read.

"""


def render() -> str:
    rows = [
        (
            " or ".join(map(code, reversed(variables(name)))),
            code(_default(field)),
            code(_values(field)),
            _meaning(field),
        )
        for name, field in SETTINGS.items()
    ]
    ranks = [(code(name), meaning) for name, meaning in RANK_VARIABLES.items()]
    settings = table(("variable", "default", "values", "meaning"), rows)
    return _HEAD + settings + _RANKS + table(("variable", "meaning"), ranks)


def _default(field: Field[Any]) -> str:
    value: Any = default_of(field)
    if value is None or isinstance(value, Secret) or value in ((), {}, ""):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(field: Field[Any]) -> str:
    if get_origin(field.type) is Literal:
        return ", ".join(get_args(field.type))
    return ""


def _meaning(field: Field[Any]) -> str:
    return str(field.metadata["description"])
