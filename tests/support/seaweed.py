"""A real S3 server (SeaweedFS) on free loopback ports, started once per test process when first asked for."""

import atexit
import json
import shutil
import subprocess
import sysconfig
import tempfile
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import httpx

from strata.storage.options import StorageOptions
from tests.support.local_http import LOCAL
from tests.support.ports import free_ports

ACCESS_KEY, SECRET_KEY = "strata-test", "strata-test-secret"


@dataclass(frozen=True, slots=True)
class Seaweed:
    endpoint_url: str
    filer_url: str

    def options(self, **changes: object) -> StorageOptions:
        settings: dict[str, object] = {
            "region": "us-east-1",
            "access_key_id": ACCESS_KEY,
            "secret_access_key": SECRET_KEY,
            "endpoint_url": self.endpoint_url,
        }
        return StorageOptions(**(settings | changes))  # type: ignore[arg-type]  # the record validates itself

    def make_bucket(self, name: str) -> None:
        answer = LOCAL.post(f"{self.filer_url}/buckets/{name}/")
        assert answer.is_success or answer.status_code == 409, answer.text  # 409: it is there already


@cache
def seaweed() -> Seaweed:
    """Its services would each take port+10000 for gRPC as well, so every port is given by name."""
    folder = Path(tempfile.mkdtemp(prefix="strata-seaweed-"))
    identity = {
        "name": "tests",
        "credentials": [{"accessKey": ACCESS_KEY, "secretKey": SECRET_KEY}],
        "actions": ["Admin", "Read", "Write", "List", "Tagging"],
    }
    config = folder / "s3.json"
    config.write_text(json.dumps({"identities": [identity]}))
    names = ("master", "volume", "filer", "s3")
    ports = free_ports(2 * len(names))
    command = [str(Path(sysconfig.get_path("scripts")) / "weed"), "server"]
    command += ["-ip=127.0.0.1", "-ip.bind=127.0.0.1", f"-dir={folder}", "-filer", "-s3", f"-s3.config={config}"]
    command += ["-s3.autoCreateBucket=false", "-s3.port.iceberg=0", "-s3.port.lance=0", "-master.volumeSizeLimitMB=256"]
    command += ["-volume.max=64", "-master.peers=none"]
    for name, port, grpc_port in zip(names, ports[: len(names)], ports[len(names) :], strict=True):
        command += [f"-{name}.port={port}", f"-{name}.port.grpc={grpc_port}"]
    with (folder / "weed.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT, cwd=folder)
    atexit.register(_stop, process, folder)
    server = Seaweed(f"http://127.0.0.1:{ports[3]}", f"http://127.0.0.1:{ports[2]}")
    _wait_ready(server, process, folder / "weed.log")
    return server


def _wait_ready(server: Seaweed, process: subprocess.Popen[bytes], log: Path) -> None:
    """Ready means that an object can be stored: the volume server joins seconds after the S3 port opens."""
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        if process.poll() is not None:
            break
        try:
            LOCAL.put(f"{server.filer_url}/ready/probe", content=b"x", timeout=10).raise_for_status()
            LOCAL.get(f"{server.endpoint_url}/status", timeout=10).raise_for_status()
            return
        except httpx.HTTPError:
            time.sleep(0.1)
    raise RuntimeError(f"SeaweedFS did not start:\n{log.read_text(errors='replace')[-2000:]}")


def _stop(process: subprocess.Popen[bytes], folder: Path) -> None:
    process.kill()  # its data is thrown away, and a polite stop takes ten seconds
    process.wait()
    shutil.rmtree(folder, ignore_errors=True)
