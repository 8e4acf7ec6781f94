"""A second host for drills: one more agent on this machine, with a folder and a slot of its own."""

import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import psutil

from strata.client.endpoints import Endpoints
from strata.config import Settings
from strata.trust.identity import ANCHOR

__all__ = ["SecondHost"]


class SecondHost:
    """Not there until `join`; after `close` nothing is left of it."""

    def __init__(self, settings: Settings, endpoints: Endpoints) -> None:
        self._settings = settings
        self._endpoints = endpoints
        self._folder = tempfile.TemporaryDirectory(prefix="strata-host-")
        self._agent: subprocess.Popen[bytes] | None = None

    def join(self) -> None:
        """Starts the agent. Its ranks keep their checkpoints where the cluster's own do."""
        folder = Path(self._folder.name)
        anchor = self._settings.data_dir.resolve() / ANCHOR
        told = {
            "STRATA_TOKEN": self._endpoints.access.token,
            "STRATA_TELEMETRY_ADDR": self._endpoints.telemetry,
            "STRATA_CA_FILE": str(anchor) if anchor.exists() else "",
            "STRATA_CHECKPOINT_BUCKET": self._settings.checkpoint_bucket
            or str(self._settings.data_dir.resolve() / "checkpoints"),
        }
        environment = {**os.environ, **{name: value for name, value in told.items() if value}}
        command = [sys.executable, "-m", "strata.agent", "--data-dir", str(folder), "--slots", "1"]
        with (folder / "agent.log").open("ab") as log:
            self._agent = subprocess.Popen(
                [*command, "--coordinator", self._endpoints.grpc],
                stdout=log,
                stderr=log,
                env=environment,
                start_new_session=True,
            )

    def vanish(self) -> None:
        """kill -9 of its agent and of its ranks."""
        if self._agent is None:
            return
        agent, self._agent = self._agent, None
        try:
            ranks = psutil.Process(agent.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            ranks = []
        agent.kill()
        for rank in ranks:
            with contextlib.suppress(psutil.NoSuchProcess):
                rank.kill()
        agent.wait()

    def close(self) -> None:
        self.vanish()
        self._folder.cleanup()
