"""The code that tasks brought along, unpacked in the agent's folder: fetched from the coordinator once per hash,
checked, read-only. The newest few stay for the next task.
"""

import asyncio
import logging
import os
from collections.abc import Callable, Collection
from pathlib import Path

from strata.errors import StrataError
from strata.launchers.code import remove_code, unpack_code
from strata.types.code import check_digest

__all__ = ["CodeFolders"]

_log = logging.getLogger(__name__)

_KEPT = 8


class CodeFolders:
    """Lives on one loop. `fetch` gives an archive's bytes and may block; `on_settled` hears when one was brought, or
    could not be."""

    def __init__(self, folder: Path, fetch: Callable[[str], bytes], on_settled: Callable[[], None]) -> None:
        self._folder = folder
        self._fetch = fetch
        self._on_settled = on_settled
        self._faults: dict[str, str] = {}
        self._jobs: dict[str, asyncio.Task[None]] = {}

    def path(self, digest: str) -> Path:
        return self._folder / check_digest(digest)

    def settle(self, digest: str) -> bool:
        """Whether the code is there, or could not be brought; else it is being fetched from now on."""
        if digest in self._faults or self.path(digest).is_dir():
            return True
        if digest not in self._jobs:
            self._jobs[digest] = asyncio.get_running_loop().create_task(self._bring(digest))
        return False

    def use(self, digest: str) -> None:
        """Raises OSError when the code could not be brought; the next one who asks has it fetched anew."""
        fault = self._faults.pop(digest, "")
        if fault:
            raise OSError(fault)
        os.utime(self.path(digest))

    def tidy(self, needed: Collection[str]) -> None:
        """Removes all but the newest, and what is still needed."""
        found = sorted(self._folder.iterdir(), key=lambda path: -path.stat().st_mtime) if self._folder.is_dir() else []
        for path in found[_KEPT:]:
            if path.name not in needed and path.name not in self._jobs:
                remove_code(path)

    async def _bring(self, digest: str) -> None:
        try:
            await asyncio.to_thread(self._unpack, digest)
        except (StrataError, OSError) as error:
            self._faults[digest] = f"the task's code could not be brought here: {error}"
            _log.warning("%s", self._faults[digest])
        finally:
            del self._jobs[digest]
        self._on_settled()

    def _unpack(self, digest: str) -> None:
        unpack_code(self._fetch(digest), digest, self.path(digest))
        _log.info("code %s is here", digest)
