"""Which tests run beside each other: a file's stay on one worker, as do those of a folder that shares one cluster."""

from xdist.scheduler import LoadFileScheduling  # type: ignore[import-untyped]  # ships no types

__all__ = ["ByCluster"]

_ONE_CLUSTER = ("tests/browser/", "tests/integration/spec/")
"""Their `conftest.py` starts one cluster for all of their tests."""


class ByCluster(LoadFileScheduling):  # type: ignore[misc]  # of a class without types
    def _split_scope(self, nodeid: str) -> str:
        together = next((folder for folder in _ONE_CLUSTER if nodeid.startswith(folder)), None)
        return together or str(super()._split_scope(nodeid))
