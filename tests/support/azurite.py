"""A real server of Azure's blobs (Azurite, Microsoft's own) on a free loopback port, started once per test process when
first asked for. `make test-azure` installs it; STRATA_AZURITE names another one.
"""

import atexit
import base64
import hashlib
import hmac
import os
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from email.utils import formatdate
from functools import cache
from pathlib import Path

import httpx

from strata.storage.options import StorageOptions
from tests.support.ports import free_ports
from tests.support.waiting import eventually

__all__ = ["ACCOUNT", "Azurite", "azurite", "find_azurite"]

_NAME = "devstoreaccount1"
_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="  # everybody's
_VERSION = "2021-12-02"
_INSTALLED = Path(__file__).resolve().parents[2] / "build" / "azurite" / "node_modules" / ".bin" / "azurite-blob"

ACCOUNT = {"AZURE_STORAGE_ACCOUNT_NAME": _NAME, "AZURE_STORAGE_ACCOUNT_KEY": _KEY}
"""What a user of it has in the environment."""


def find_azurite() -> str | None:
    return os.environ.get("STRATA_AZURITE") or (
        str(_INSTALLED) if _INSTALLED.exists() else shutil.which("azurite-blob")
    )


@dataclass(frozen=True, slots=True)
class Azurite:
    url: str

    def options(self) -> StorageOptions:
        return StorageOptions(azure_endpoint=self.url)

    def make_container(self, name: str) -> None:
        """Strata makes none; its owner does, by a request that is signed with the account's key."""
        told = {"x-ms-date": formatdate(usegmt=True), "x-ms-version": _VERSION}
        signed = "\n".join(f"{name}:{value}" for name, value in sorted(told.items()))
        resource = f"/{_NAME}/{_NAME}/{name}\nrestype:container"
        text = f"PUT{chr(10) * 12}{signed}\n{resource}"
        digest = hmac.digest(base64.b64decode(_KEY), text.encode(), hashlib.sha256)
        told["Authorization"] = f"SharedKey {_NAME}:{base64.b64encode(digest).decode()}"
        answer = httpx.put(f"{self.url}/{name}?restype=container", headers=told, timeout=60)
        assert answer.status_code in (201, 409), answer.text  # 409: it is there already


@cache
def azurite() -> Azurite:
    program = find_azurite()
    assert program is not None
    folder = Path(tempfile.mkdtemp(prefix="strata-azurite-"))
    (port,) = free_ports(1)
    command = [program, "--blobPort", str(port), "--location", str(folder), "--silent", "--disableTelemetry"]
    with (folder / "azurite.log").open("wb") as log:
        process = subprocess.Popen([*command, "--skipApiVersionCheck"], stdout=log, stderr=subprocess.STDOUT)
    atexit.register(_stop, process, folder)
    server = Azurite(f"http://127.0.0.1:{port}/{_NAME}")
    eventually("Azurite", lambda: process.poll() is not None or _answers(server), within_s=60)
    assert process.poll() is None, (folder / "azurite.log").read_text()
    return server


def _answers(server: Azurite) -> bool:
    try:
        return httpx.get(server.url, timeout=10).status_code > 0
    except httpx.HTTPError:
        return False


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.kill()
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
