"""Keeps pandas out of a process of ours. clickhouse-connect imports it at its start where it is installed, pyarrow with
its first array, for conversions that nothing here asks for: a third of a second, in the first answer, and tens of MB.
"""

import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from types import ModuleType

__all__ = ["keep_pandas_out"]


class _NoPandas(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "pandas":
            raise ModuleNotFoundError("this process does without pandas", name=fullname)


def keep_pandas_out() -> None:
    """Before either is imported. Both take it as not installed then."""
    sys.meta_path.insert(0, _NoPandas())
