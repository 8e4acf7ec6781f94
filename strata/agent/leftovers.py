"""Points that processes of this host had put into the data folder when they were killed: sent by the agent, which
outlives them. A process that still lives may send the same batch; it counts once.
"""

import asyncio
import logging
import time
from collections.abc import Callable
from pathlib import Path

from strata.client.spill import offline_folders
from strata.client.telemetry import send_folder
from strata.errors import StrataError
from strata.trust.access import Access

__all__ = ["Leftovers"]

_log = logging.getLogger(__name__)
_LOOK_S = 2.0
_AGE_S = 5.0  # younger ones are on their way


class Leftovers:
    """Looks every few seconds. Nothing of it stops the agent."""

    def __init__(self, data_dir: Path, find: Callable[[], str | None], access: Access) -> None:
        self._data_dir = data_dir
        self._find = find
        self._access = access

    async def run(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            await asyncio.to_thread(self.send, _AGE_S)

    def send(self, min_age_s: float = 0.0) -> int:
        """Returns how many batches went out."""
        address = self._find()
        count = 0
        for folder in offline_folders(self._data_dir) if address else ():
            try:
                count += send_folder(folder, address or "", self._access, written_before=time.time() - min_age_s)
            except StrataError as error:
                _log.debug("what lies in %s is not sent now: %s", folder, error)
                break
            except OSError as error:
                _log.warning("%s cannot be read: %s", folder, error)
        return count
