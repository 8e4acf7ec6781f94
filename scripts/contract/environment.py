"""environment.md: every variable that Strata reads, from strata/config.py."""

from typing import Any, Literal, get_args, get_origin

from pydantic import SecretStr
from pydantic.fields import FieldInfo

from scripts.contract.markdown import code, table
from strata.config import RANK_VARIABLES, Settings, variables

__all__ = ["render"]

_HEAD = """# Environment

Generated from `strata/config.py` by `make reference`. [configuration.md](../configuration.md) says which source wins.
Each variable of the first table is also a key of `strata.toml`, in lower case and without its prefix.

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
        for name, field in Settings.model_fields.items()
    ]
    ranks = [(code(name), meaning) for name, meaning in RANK_VARIABLES.items()]
    settings = table(("variable", "default", "values", "meaning"), rows)
    return _HEAD + settings + _RANKS + table(("variable", "meaning"), ranks)


def _default(field: FieldInfo) -> str:
    value: Any = field.get_default(call_default_factory=True)
    if value is None or isinstance(value, SecretStr) or value in ((), {}, ""):
        return ""
    return str(value).lower() if isinstance(value, bool) else str(value)


def _values(field: FieldInfo) -> str:
    if get_origin(field.annotation) is Literal:
        return ", ".join(get_args(field.annotation))
    return ""


def _meaning(field: FieldInfo) -> str:
    if not field.description:
        raise ValueError(f"a setting without a description: {field!r}")
    return field.description
